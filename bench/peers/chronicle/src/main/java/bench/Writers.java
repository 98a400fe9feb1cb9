package bench;

import java.io.IOException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicLong;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.bytes.SyncMode;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;

/** The workloads that append. Each warms the compiler up before it times anything. */
final class Writers {
    static final int WARM = 300_000;
    static final int BLOCK = 2_000;
    static final int THREADS = 8;
    static final long GAP_NS = 20_000;
    static final int STAMP_WARM = 50_000;

    private Writers() {
    }

    static void append(Job job) {
        try (ChronicleQueue queue = job.open(); ExcerptAppender appender = queue.createAppender()) {
            Bytes<?>[] payloads = job.payloads();
            fill(appender, payloads, WARM);
            answerRate(spanOf(appender, payloads, job.countMax(), job.secondsMax()));
        }
    }

    /** Waits for a line after warming up, so that several processes begin together. */
    static void appendWhenTold(Job job) throws IOException {
        try (ChronicleQueue queue = job.open(); ExcerptAppender appender = queue.createAppender()) {
            Bytes<?>[] payloads = job.payloads();
            fill(appender, payloads, WARM);
            System.out.println("ready");
            System.in.read();
            answerRate(spanOf(appender, payloads, job.countMax(), job.secondsMax()));
        }
    }

    static void appendThreads(Job job) throws InterruptedException {
        try (ChronicleQueue queue = job.open()) {
            CyclicBarrier barrier = new CyclicBarrier(THREADS);
            AtomicLong total = new AtomicLong();
            AtomicLong began = new AtomicLong(Long.MAX_VALUE);
            AtomicLong ended = new AtomicLong();
            Thread[] threads = new Thread[THREADS];
            for (int number = 0; number < THREADS; number++) {
                threads[number] = new Thread(() -> {
                    try (ExcerptAppender appender = queue.createAppender()) {
                        Bytes<?>[] payloads = job.payloads();
                        fill(appender, payloads, WARM / THREADS);
                        barrier.await();
                        began.accumulateAndGet(System.nanoTime(), Math::min);
                        total.addAndGet(spanOf(appender, payloads, job.countMax() / THREADS,
                                job.secondsMax())[0]);
                        ended.accumulateAndGet(System.nanoTime(), Math::max);
                    } catch (Exception error) {
                        throw new IllegalStateException(error);
                    }
                });
                threads[number].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            answerRate(new long[] {total.get(), ended.get() - began.get()});
        }
    }

    static void syncOne(Job job) {
        try (ChronicleQueue queue = ChronicleQueue.singleBuilder(job.directory())
                .syncMode(SyncMode.SYNC).build();
                ExcerptAppender appender = queue.createAppender()) {
            Bytes<?>[] payloads = job.payloads();
            fill(appender, payloads, WARM / 10);
            appender.sync();
            long count = 0;
            long began = System.nanoTime();
            long deadline = began + (long) (job.secondsMax() * 1e9);
            long now = began;
            while (now < deadline) {
                appender.writeBytes(payloads[(int) (count % Job.PAYLOADS)]);
                appender.sync();
                count++;
                now = System.nanoTime();
            }
            answerRate(new long[] {count, now - began});
        }
    }

    static void appendLatency(Job job) {
        try (ChronicleQueue queue = job.open(); ExcerptAppender appender = queue.createAppender()) {
            Bytes<?>[] payloads = job.payloads();
            fill(appender, payloads, WARM);
            long[] taken = new long[(int) job.countMax()];
            long deadline = System.nanoTime() + (long) (job.secondsMax() * 1e9);
            int count = 0;
            long before = System.nanoTime();
            while (count < taken.length && before < deadline) {
                appender.writeBytes(payloads[count % Job.PAYLOADS]);
                long after = System.nanoTime();
                taken[count++] = after - before;
                before = after;
            }
            Job.answer(Job.percentiles(taken, count));
        }
    }

    /** Messages that carry their own time, at even gaps, for a reader in another process. */
    static void writeEvenly(Job job) throws IOException {
        try (ChronicleQueue queue = job.open(); ExcerptAppender appender = queue.createAppender()) {
            Bytes<?> payload = Bytes.allocateDirect(job.payloadBytes());
            System.in.read();
            long due = System.nanoTime();
            for (long number = 0; number < job.countMax() + STAMP_WARM; number++) {
                due += GAP_NS;
                while (System.nanoTime() < due) {
                    Thread.onSpinWait();
                }
                payload.clear();
                payload.writeLong(System.nanoTime());
                payload.writeSkip(job.payloadBytes() - Long.BYTES);
                appender.writeBytes(payload);
            }
        }
    }

    static void fill(ExcerptAppender appender, Bytes<?>[] payloads, long count) {
        for (long number = 0; number < count; number++) {
            appender.writeBytes(payloads[(int) (number % Job.PAYLOADS)]);
        }
    }

    /** Appends until the count or the time is reached: {messages, nanoseconds}. */
    private static long[] spanOf(ExcerptAppender appender, Bytes<?>[] payloads, long countMax,
            double secondsMax) {
        long count = 0;
        long began = System.nanoTime();
        long deadline = began + (long) (secondsMax * 1e9);
        long now = began;
        while (count < countMax && now < deadline) {
            fill(appender, payloads, BLOCK);
            count += BLOCK;
            now = System.nanoTime();
        }
        return new long[] {count, now - began};
    }

    private static void answerRate(long[] span) {
        double nanoseconds = (double) span[1] / span[0];
        Job.answer(Job.figure("ns", nanoseconds) + ", " + Job.figure("us", nanoseconds / 1e3) + ", "
                + Job.figure("rate", 1e9 / nanoseconds) + ", "
                + Job.figure("messages", span[0]));
    }
}

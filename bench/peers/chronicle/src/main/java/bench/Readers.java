package bench;

import java.io.IOException;
import java.util.Random;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.ExcerptTailer;

/** The workloads that read. */
final class Readers {
    static final int PASSES = 3;
    static final int SEEKS = 20_000;

    private Readers() {
    }

    static void iterate(Job job) {
        try (ChronicleQueue queue = job.open()) {
            build(queue, job);
            double best = Double.MAX_VALUE;
            Bytes<?> payload = Bytes.allocateElasticDirect(job.payloadBytes());
            for (int pass = 0; pass < PASSES; pass++) {
                long count = 0;
                try (ExcerptTailer tailer = queue.createTailer()) {
                    long began = System.nanoTime();
                    while (tailer.readBytes(payload.clear())) {
                        count++;
                    }
                    best = Math.min(best, (double) (System.nanoTime() - began) / count);
                }
                require(count == job.readCount());
            }
            Job.answer(Job.figure("payload_ns", best));
        }
    }

    static void seekRead(Job job) {
        try (ChronicleQueue queue = job.open(); ExcerptTailer tailer = queue.createTailer()) {
            build(queue, job);
            long first = queue.firstIndex();
            Random source = new Random(7);
            Bytes<?> payload = Bytes.allocateElasticDirect(job.payloadBytes());
            double taken = 0;
            for (int pass = 0; pass < PASSES; pass++) {
                long began = System.nanoTime();
                for (int number = 0; number < SEEKS; number++) {
                    boolean there = tailer.moveToIndex(first + source.nextInt((int) job.readCount()));
                    require(there && tailer.readBytes(payload.clear()));
                }
                taken = (System.nanoTime() - began) / 1e3 / SEEKS;
            }
            Job.answer(Job.figure("us", taken));
        }
    }

    /** Reads what another process writes; asks again and again. */
    static void spinning(Job job) throws IOException {
        try (ChronicleQueue queue = job.open(); ExcerptTailer tailer = queue.createTailer()) {
            Bytes<?> payload = Bytes.allocateElasticDirect(job.payloadBytes());
            long[] taken = new long[(int) job.countMax()];
            long expected = job.countMax() + Writers.STAMP_WARM;
            long deadline = System.nanoTime() + 30_000_000_000L;
            System.out.println("ready");
            for (long seen = 0; seen < expected;) {
                if (!tailer.readBytes(payload.clear())) {
                    require(System.nanoTime() < deadline);
                    continue;
                }
                long arrived = System.nanoTime() - payload.readLong();
                if (seen >= Writers.STAMP_WARM) {
                    taken[(int) (seen - Writers.STAMP_WARM)] = arrived;
                }
                seen++;
            }
            Job.answer(Job.percentiles(taken, taken.length));
        }
    }

    private static void build(ChronicleQueue queue, Job job) {
        try (ExcerptAppender appender = queue.createAppender()) {
            Writers.fill(appender, job.payloads(), job.readCount());
        }
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalStateException("a read did not give what was written");
        }
    }
}

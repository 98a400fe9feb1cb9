package bench;

import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.StringJoiner;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ChronicleQueue;

/** What one run is asked to do, and how it answers: one line of JSON on standard output. */
record Job(String directory, int payloadBytes, long countMax, double secondsMax, long readCount) {
    static final int PAYLOADS = 1024;

    static Job of(String[] arguments) {
        return new Job(arguments[1], Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]),
                Double.parseDouble(arguments[4]), Long.parseLong(arguments[5]));
    }

    ChronicleQueue open() {
        return ChronicleQueue.single(directory);
    }

    /** Different payloads, outside the Java heap, as the library wants them. */
    Bytes<?>[] payloads() {
        Random source = new Random(20260115);
        Bytes<?>[] payloads = new Bytes<?>[PAYLOADS];
        byte[] content = new byte[payloadBytes];
        for (int number = 0; number < PAYLOADS; number++) {
            source.nextBytes(content);
            payloads[number] = Bytes.allocateDirect(payloadBytes);
            payloads[number].write(content);
        }
        return payloads;
    }

    /** The same percentiles, by the same names, as the Python programs give. */
    static String percentiles(long[] values, int count) {
        long[] ordered = Arrays.copyOf(values, count);
        Arrays.sort(ordered);
        String[] names = {"p50", "p90", "p99", "p999", "p9999"};
        double[] shares = {0.5, 0.9, 0.99, 0.999, 0.9999};
        StringJoiner figures = new StringJoiner(", ");
        for (int number = 0; number < names.length; number++) {
            int place = Math.min(count - 1, (int) (shares[number] * count));
            figures.add(figure(names[number], ordered[place]));
        }
        figures.add(figure("max", ordered[count - 1]));
        return figures.add(figure("samples", count)).toString();
    }

    static String figure(String name, double value) {
        return String.format(Locale.ROOT, "\"%s\": %.3f", name, value);
    }

    static void answer(String figures) {
        System.out.println("{" + figures + "}");
    }
}

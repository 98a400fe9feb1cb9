package bench;

import java.io.IOException;

/** Runs one workload on Chronicle Queue: WORKLOAD DIRECTORY PAYLOAD_BYTES COUNT SECONDS READ_COUNT. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        Job job = Job.of(arguments);
        switch (arguments[0]) {
            case "append" -> Writers.append(job);
            case "append_threads" -> Writers.appendThreads(job);
            case "append_when_told" -> Writers.appendWhenTold(job);
            case "sync_one" -> Writers.syncOne(job);
            case "append_latency" -> Writers.appendLatency(job);
            case "write_evenly" -> Writers.writeEvenly(job);
            case "iterate" -> Readers.iterate(job);
            case "seek_read" -> Readers.seekRead(job);
            case "spinning" -> Readers.spinning(job);
            default -> throw new IllegalArgumentException("unknown workload " + arguments[0]);
        }
        // The library leaves threads behind that would keep the process for seconds.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}

package io.terrace.kafka.cluster;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;

/** Programs in virtual machines of their own: brokers in KRaft mode, and others. */
final class Cluster implements AutoCloseable {
    private static final int FIRST_PORT = 29_092;
    private static final String ID = "VGVycmFjZVRlcnJhY2VUZQ";

    private final Path directory;
    private final Process[] brokers;
    private final List<Process> others = new ArrayList<>();

    Cluster(Path directory, int count) throws Exception {
        this.directory = directory;
        brokers = new Process[count];
        for (int i = 0; i < count; i++) {
            Files.writeString(settings(i), text(i));
            Process format = java("format-" + i, "128m", "kafka.tools.StorageTool", "format",
                    "-t", ID, "-c", settings(i).toString());
            if (format.waitFor() != 0) {
                throw new IOException("the storage of broker " + i + " cannot be formatted");
            }
            start(i);
        }
    }

    private Path settings(int broker) {
        return directory.resolve("broker-" + broker + ".properties");
    }

    private static int controllerPort(int broker) {
        return FIRST_PORT + 100 + broker;
    }

    private int majority() {
        return brokers.length / 2 + 1;
    }

    private String text(int broker) {
        StringBuilder voters = new StringBuilder();
        for (int i = 0; i < brokers.length; i++) {
            voters.append(i == 0 ? "" : ",").append(i).append("@localhost:")
                    .append(controllerPort(i));
        }
        return String.join("\n",
                "process.roles=broker,controller",
                "node.id=" + broker,
                "controller.quorum.voters=" + voters,
                "listeners=PLAINTEXT://localhost:" + (FIRST_PORT + broker)
                        + ",CONTROLLER://localhost:" + controllerPort(broker),
                "controller.listener.names=CONTROLLER",
                "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "log.dirs=" + directory.resolve("log-" + broker),
                "num.partitions=4",
                "default.replication.factor=" + brokers.length,
                "min.insync.replicas=" + majority(),
                "offsets.topic.replication.factor=" + brokers.length,
                "offsets.topic.num.partitions=4",
                "transaction.state.log.replication.factor=" + brokers.length,
                "transaction.state.log.num.partitions=4",
                "transaction.state.log.min.isr=" + majority(),
                "group.initial.rebalance.delay.ms=0",
                "");
    }

    void start(int broker) throws IOException {
        brokers[broker] = java("broker-" + broker, "400m", "kafka.Kafka",
                settings(broker).toString());
    }

    /** Sends SIGKILL to a broker. */
    void kill(int broker) throws InterruptedException {
        brokers[broker].destroyForcibly().waitFor();
    }

    /** The addresses of a number of brokers. */
    static String addresses(int count) {
        StringBuilder addresses = new StringBuilder();
        for (int i = 0; i < count; i++) {
            addresses.append(i == 0 ? "" : ",").append("localhost:").append(FIRST_PORT + i);
        }
        return addresses.toString();
    }

    /** Waits until all brokers are there, and makes topics. */
    static void createTopics(int brokers, int partitions, List<String> names) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", addresses(brokers));
        try (Admin admin = Admin.create(settings)) {
            while (admin.describeCluster().nodes().get().size() < brokers) {
                Thread.sleep(100);
            }
            List<NewTopic> topics = new ArrayList<>();
            for (String name : names) {
                topics.add(new NewTopic(name, partitions, (short) brokers));
            }
            admin.createTopics(topics).all().get();
        }
    }

    /** Starts a program whose output goes to a file of that name. */
    Process java(String name, String heap, String... arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx" + heap, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-cp", System.getProperty("java.class.path")));
        command.addAll(List.of(arguments));
        File output = directory.resolve(name + ".out").toFile();
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(output))
                .start();
        others.add(process);
        return process;
    }

    @Override
    public void close() {
        others.forEach(Process::destroyForcibly);
    }
}

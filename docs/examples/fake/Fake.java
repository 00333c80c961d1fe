// Java 17: `java Fake.java`, or the same in a JUnit test. svcd ends with the JVM, also when that is killed.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Fake implements AutoCloseable {
    private final Process svcd = new ProcessBuilder("svcd", "fake", "--json", "--speed", "manual")
        .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    private final String about = new BufferedReader(new InputStreamReader(svcd.getInputStream())).readLine();

    Fake() throws Exception {}

    static String text(String json, String name) { // use the JSON library of your project
        return json.replaceFirst("(?s).*?\"" + name + "\": ?\"([^\"]*)\".*", "$1");
    }

    String post(String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(text(about, "url") + path))
            .header("Content-Type", "application/json").POST(HttpRequest.BodyPublishers.ofString(body)).build();
        var answer = HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
        if (answer.statusCode() >= 300) throw new AssertionError(path + ": " + answer.body());
        return answer.body();
    }

    public void close() {
        svcd.destroy();
    }

    public static void main(String[] arguments) throws Exception {
        try (var fake = new Fake()) {
            var cluster = fake.post("/v1.1/demo/clusters", """
                {"name": "first", "plugin_name": "fake", "engine_version": "0.1",
                 "default_image_id": "%s", "user_keypair_id": "demo", "node_groups": [
                   {"name": "master", "count": 1, "flavor_id": "2", "node_processes": ["namenode"]},
                   {"name": "worker", "count": 2, "flavor_id": "2", "node_processes": ["datanode"]}]}
                """.formatted(text(fake.about, "image_id")));
            System.out.println(fake.post("/_fake/until", """
                {"path": "/v1.1/demo/clusters/%s", "field": "cluster.status", "values": ["Active"]}
                """.formatted(text(cluster, "id"))));
        }
    }
}

// Go: `go test fake_test.go`. svcd ends with the test process, also when that is killed.
package fake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"testing"
)

type fake struct{ URL, Tenant, Image_ID, Flavor_ID, Keypair string }

func start(t *testing.T) (f fake) {
	svcd := exec.Command("svcd", "fake", "--json", "--speed", "manual")
	out, _ := svcd.StdoutPipe()
	if err := svcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { svcd.Process.Kill(); svcd.Wait() })
	line, _ := bufio.NewReader(out).ReadBytes('\n')
	if err := json.Unmarshal(line, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fake) post(t *testing.T, path string, body any) (answer map[string]any) {
	text, _ := json.Marshal(body)
	response, err := http.Post(f.URL+path, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	json.NewDecoder(response.Body).Decode(&answer)
	if response.StatusCode >= 300 {
		t.Fatal(path, answer)
	}
	return answer
}

func TestClusterBecomesActive(t *testing.T) {
	f := start(t)
	group := func(name string, count int, process string) map[string]any {
		return map[string]any{"name": name, "count": count, "flavor_id": f.Flavor_ID, "node_processes": []string{process}}
	}
	made := f.post(t, "/v1.1/"+f.Tenant+"/clusters", map[string]any{
		"name": "first", "plugin_name": "fake", "engine_version": "0.1",
		"default_image_id": f.Image_ID, "user_keypair_id": f.Keypair,
		"node_groups": []any{group("master", 1, "namenode"), group("worker", 2, "datanode")},
	})
	id := made["cluster"].(map[string]any)["id"]
	f.post(t, "/_fake/until", map[string]any{
		"path": fmt.Sprintf("/v1.1/%s/clusters/%s", f.Tenant, id), "field": "cluster.status", "values": []string{"Active"},
	})
}

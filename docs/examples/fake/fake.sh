#!/bin/sh
# svcd fake with curl: start it, make a cluster, let time pass until the cluster is Active.
set -eu
port=${PORT:-18386}
svcd fake --port "$port" --speed manual &
trap 'kill $!' EXIT
curl -sf --retry 50 --retry-delay 1 --retry-connrefused "http://127.0.0.1:$port/healthz" > /dev/null

post() { # PATH BODY
    curl -sSf "http://127.0.0.1:$port$1" -H 'Content-Type: application/json' -d "$2"
}
id=$(post /v1.1/demo/clusters '{
    "name": "first", "plugin_name": "fake", "engine_version": "0.1",
    "default_image_id": "00000000-0000-4000-8000-000000000002", "user_keypair_id": "demo",
    "node_groups": [{"name": "master", "count": 1, "flavor_id": "2", "node_processes": ["namenode"]},
                    {"name": "worker", "count": 2, "flavor_id": "2", "node_processes": ["datanode"]}]
}' | sed 's/.*"id":"\([^"]*\)".*/\1/')
post /_fake/until "{\"path\": \"/v1.1/demo/clusters/$id\", \"field\": \"cluster.status\", \"values\": [\"Active\"]}"

"""pytest: the fixture `svcd_fake` comes with svcd; `session` makes it the peer of requests."""


def test_cluster_becomes_active(svcd_fake):
    clusters = f"{svcd_fake.url}/v1.1/{svcd_fake.tenant}/clusters"
    groups = [
        {
            "name": name,
            "count": count,
            "flavor_id": svcd_fake.flavor_id,
            "node_processes": [process],
        }
        for name, count, process in [("master", 1, "namenode"), ("worker", 2, "datanode")]
    ]
    with svcd_fake.session() as http:
        made = http.post(
            clusters,
            json={
                "name": "first",
                "plugin_name": "fake",
                "engine_version": "0.1",
                "default_image_id": svcd_fake.image_id,
                "user_keypair_id": svcd_fake.keypair,
                "node_groups": groups,
            },
        )
        assert made.status_code == 202, made.text
        one = f"{clusters}/{made.json()['cluster']['id']}"
        svcd_fake.until(lambda: http.get(one).json()["cluster"]["status"] == "Active")

"""Plugins and the image registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.bodies import JSON, V0, V1, refused, unknown
from tests.conformance.rows import ID, Each, Either, Has, Only, Row

OPTION: Any = Either((str, bool, int))

SHORT = {"name": str, "title": str, "description": str, "versions": Each(str)}

CONFIG = Only(
    {
        "name": str,
        "description": str,
        "default_value": OPTION,
        "config_type": str,
        "applicable_target": str,
        "scope": Either(("node", "cluster")),
        "is_optional": bool,
        "priority": int,
    }
)

PLUGINS = (
    Row(
        says="GET plugins: 200, array of short plugin",
        path=V0 + "/plugins",
        headers=JSON,
        body=Only({"plugins": Each(Only(SHORT))}),
    ),
    Row(
        says="v1.1 includes every v1.0 request",
        path=V1 + "/plugins",
        body=Only({"plugins": Has({"name": "{plugin}"})}),
    ),
    Row(
        says="GET plugin: name, title, description, versions",
        path=V0 + "/plugins/{plugin}",
        body=Only({"plugin": Only({**SHORT, "name": "{plugin}", "versions": Has("{version}")})}),
    ),
    Row(
        says="GET plugin version: detailed",
        path=V0 + "/plugins/{plugin}/{version}",
        body=Only(
            {
                "plugin": Only(
                    {
                        **SHORT,
                        "node_processes": {"HDFS": Has("namenode")},
                        "required_image_tags": Each(str),
                        "configs": Each(CONFIG),
                    }
                )
            }
        ),
    ),
    unknown("an unknown plugin is 404", "GET", V0 + "/plugins/nope"),
    unknown("an unknown version is 404", "GET", V0 + "/plugins/{plugin}/0.0.0"),
    Row(
        says="convert-config: 202, cluster_template with a fixed description",
        method="POST",
        path=V0 + "/plugins/{plugin}/{version}/convert-config?flavor_id={flavor_id}",
        data=b'{"Blueprints": {"blueprint_name": "bp-{run}"}, "host_groups": [{"name": "m", '
        b'"cardinality": "1", "components": [{"name": "NAMENODE"}]}]}',
        status=202,
        body={
            "cluster_template": {
                "id": ID,
                "name": str,
                "description": "Converted from a configuration file",
                "node_groups": [{"name": "m", "count": 1, "node_processes": ["namenode"]}],
            }
        },
        save={"converted": ("cluster_template", "id")},
    ),
    Row(
        says="convert-config with a template name in the path",
        method="POST",
        path=V1 + "/plugins/{plugin}/{version}/convert-config/conv-{run}",
        data=b"node_groups:\n- {name: m, count: 1, flavor_id: '{flavor_id}', "
        b"node_processes: [namenode]}\n",
        status=202,
        body={"cluster_template": {"name": "conv-{run}"}},
        save={"converted_2": ("cluster_template", "id")},
    ),
    Row(
        says="convert-config of anything else: 400 with the reason",
        method="POST",
        path=V0 + "/plugins/{plugin}/{version}/convert-config",
        data=b"\xff\xfe nothing",
        status=400,
        error="MALFORMED_REQUEST_BODY",
    ),
    unknown(
        "convert-config of an unknown version is 404 whatever the body",
        "POST",
        V0 + "/plugins/{plugin}/0.0/convert-config",
        data=b"x",
    ),
    Row(says="clean up", method="DELETE", path=V0 + "/cluster-templates/{converted}", status=204),
    Row(says="clean up", method="DELETE", path=V0 + "/cluster-templates/{converted_2}", status=204),
)


def image(tags: Sequence[str], metadata: Mapping[str, str], username: str = "ubuntu") -> Any:
    """A registered image."""
    return Only(
        {
            "id": "{image_id}",
            "name": str,
            "status": "ACTIVE",
            "username": username,
            "tags": list(tags),
            "minDisk": int,
            "minRam": int,
            "progress": int,
            "metadata": Only(dict(metadata)),
        },
        {"description": str},
    )


REGISTERED = {"_svc_username": "ubuntu", "_svc_description": "words"}

TAGGED = {**REGISTERED, "_svc_tag_t-{run}": "True", "_svc_tag_1.2.1": "True"}

IMAGES = (
    Row(says="begin unregistered", method="DELETE", path=V0 + "/images/{image_id}", status=204),
    Row(
        says="the list shows registered images only",
        path=V0 + "/images",
        headers=JSON,
        body=Only({"images": list}),
    ),
    Row(
        says="GET of an unregistered image is 400",
        path=V0 + "/images/{image_id}",
        status=400,
        error="IMAGE_NOT_REGISTERED",
    ),
    Row(
        says="POST image registers: 202, tags are empty, metadata holds user and description",
        method="POST",
        path=V0 + "/images/{image_id}",
        json={"username": "ubuntu", "description": "words"},
        status=202,
        body=Only({"image": image([], REGISTERED)}),
    ),
    Row(
        says="GET image: 200",
        path=V0 + "/images/{image_id}",
        body=Only({"image": image([], REGISTERED)}),
    ),
    Row(
        says="POST tag: 202, tags and metadata agree",
        method="POST",
        path=V0 + "/images/{image_id}/tag",
        json={"tags": ["t-{run}", "1.2.1"]},
        status=202,
        body=Only({"image": image(["1.2.1", "t-{run}"], TAGGED)}),
    ),
    Row(
        says="a tag given twice is harmless",
        method="POST",
        path=V0 + "/images/{image_id}/tag",
        json={"tags": ["1.2.1"]},
        status=202,
        body=Only({"image": image(["1.2.1", "t-{run}"], TAGGED)}),
    ),
    Row(
        says="images?tags=a&tags=b: those that have all",
        path=V0 + "/images?tags=t-{run}&tags=1.2.1",
        body=Only({"images": [image(["1.2.1", "t-{run}"], TAGGED)]}),
    ),
    Row(
        says="images?tags=a&tags=b: none that lacks one",
        path=V0 + "/images?tags=t-{run}&tags=nope",
        body=Only({"images": []}),
    ),
    Row(
        says="POST untag: 202, both are gone",
        method="POST",
        path=V0 + "/images/{image_id}/untag",
        json={"tags": ["1.2.1", "never"]},
        status=202,
        body=Only({"image": image(["t-{run}"], {**REGISTERED, "_svc_tag_t-{run}": "True"})}),
    ),
    Row(
        says="a second registration overwrites; the description is there when given",
        method="POST",
        path=V1 + "/images/{image_id}",
        json={"username": "centos"},
        status=202,
        body=Only(
            {
                "image": image(
                    ["t-{run}"], {"_svc_username": "centos", "_svc_tag_t-{run}": "True"}, "centos"
                )
            }
        ),
    ),
    Row(says="unregister", method="DELETE", path=V0 + "/images/{image_id}", status=204),
    Row(
        says="an image that is not registered can be tagged",
        method="POST",
        path=V0 + "/images/{image_id}/tag",
        json={"tags": ["early"]},
        status=202,
        body=Only({"image": image(["early"], {"_svc_tag_early": "True"}, "")}),
    ),
    Row(
        says="an image that was tagged before is registered without these tags",
        method="POST",
        path=V0 + "/images/{image_id}",
        json={"username": "ubuntu", "description": "words"},
        status=202,
        body=Only({"image": image([], REGISTERED)}),
    ),
    refused("username is required", {"description": "d"}, V0 + "/images/{image_id}"),
    refused("username is not empty", {"username": ""}, V0 + "/images/{image_id}"),
    refused("an image with an unknown field", {"username": "u", "x": 1}, V0 + "/images/{image_id}"),
    refused("tags is an array", {"tags": "a"}, V0 + "/images/{image_id}/tag"),
    refused("tags are words", {"tags": ["a b"]}, V0 + "/images/{image_id}/tag"),
    refused("tags is required", {}, V0 + "/images/{image_id}/untag"),
    unknown("GET of an unknown image", "GET", V0 + "/images/nope"),
    unknown(
        "POST of an unknown image is 404 before its body is looked at",
        "POST",
        V0 + "/images/nope",
        json={"x": 1},
    ),
    unknown("tag of an unknown image", "POST", V0 + "/images/nope/tag", json={"tags": ["a"]}),
    unknown("DELETE of an unknown image", "DELETE", V0 + "/images/nope"),
    Row(
        says="DELETE image: 204, empty",
        method="DELETE",
        path=V0 + "/images/{image_id}",
        status=204,
        raw=b"",
    ),
    Row(
        says="DELETE of an unregistered image: 204",
        method="DELETE",
        path=V0 + "/images/{image_id}",
        status=204,
    ),
)

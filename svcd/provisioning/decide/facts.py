"""The facts that a request is checked against, read from cloud and store. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from svcd.model.cloud import Flavor, Image, KeyPair, Network, Quota
from svcd.model.job import JobBinaryInternal
from svcd.model.template import ClusterTemplate, NodeGroupTemplate
from svcd.model.wire import IMAGE_TAG, IMAGE_TAG_VALUE, IMAGE_USERNAME
from svcd.provisioning.distributions.spi import IDistribution

SSH_PORT: Final = "_svc_ssh_port"
PROBLEM: Final = "_svc_problem"
"""Image properties beside those of the registry (`svcd.model.wire`)."""


@frozen(kw_only=True)
class Facts:
    """The facts. None and missing keys: the object does not exist, or svcd did not read it.

    distribution: of the request's plugin; plugins: names on offer. image: under the id of the
    request; images: all images, if the image of the request is not registered. keypairs: all names,
    if the key pair of the request does not exist. flavors: by id. node_group_templates: by id,
    those that the request names. scripts: by name, those of the request's groups and templates;
    script_names: of all internal binaries, if a script does not exist.
    """

    distribution: IDistribution | None = None
    plugins: tuple[str, ...] = ()
    image: Image | None = None
    flavors: Mapping[str, Flavor] = field(factory=dict)
    images: Sequence[Image] = ()
    keypair: KeyPair | None = None
    keypairs: Sequence[str] = ()
    networks: Sequence[Network] = ()
    quota: Quota = field(factory=Quota)
    cluster_template: ClusterTemplate | None = None
    node_group_templates: Mapping[str, NodeGroupTemplate] = field(factory=dict)
    scripts: Mapping[str, JobBinaryInternal] = field(factory=dict)
    script_names: Sequence[str] = ()


@frozen(kw_only=True)
class Bounds:
    """The largest values of one cluster, from the settings.

    most_idle_s, most_age_s: of `idle_delete_s` and `max_age_s`; 0: any.
    """

    groups: int = 100
    nodes: int = 1000
    most_idle_s: int = 0
    most_age_s: int = 0


def as_registered(facts: Facts, user: str, version: str) -> Facts:
    """The facts with an image that is registered with the login `user` and has the tags it needs.

    Properties that the image has stay as they are.
    """
    image = facts.image
    if image is None:
        return facts
    tags: Sequence[str] = ()
    if facts.distribution is not None and version in facts.distribution.versions:
        tags = list(facts.distribution.required_image_tags(version))
    given = {IMAGE_USERNAME: user, **{IMAGE_TAG + tag: IMAGE_TAG_VALUE for tag in tags}}
    return evolve(facts, image=evolve(image, properties={**given, **image.properties}))

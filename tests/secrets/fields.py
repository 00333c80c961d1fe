"""The closed table of fields that hold a credential, and of those that only sound like it.

A field counts when its name sounds like a credential or when it is of type Secret. Records of the
embedded peers (they stand for the outside) and the descriptions of answers (never made) are left
out. Secrets that are in no field: see LOOSE.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping

import attrs

import svcd

SOUNDS = re.compile(
    r"pass|secret|token|key|cred|trust(?!or)|private|seal|stdin|extra|configs|args|params|content$|^sent$",
    re.IGNORECASE,
)
_LEFT_OUT = ("svcd.embedded",)

SECRET: Mapping[str, str] = {
    "cli.cloud_doctor.CloudUser.token": "command token",
    "clients.http.Answer.sent": "token",
    "clients.http._Call.sent": "token",
    "clients.identity.Scope.trust_id": "trust",
    "clients.tokens.Token.text": "token",
    "model.cloud.Caller.token": "token",
    "model.cluster.Cluster.cluster_configs": "cluster-config",
    "model.cluster.Cluster.management_private_key": "management key",
    "model.cluster.Cluster.trust_id": "trust",
    "model.cluster.NodeGroup.node_configs": "group-config",
    "model.idempotency.KeyedRequest.content": "source",
    "model.job.Credentials.password": "source",
    "model.job_credential.ApplicationCredential.secret": "job credential",
    "model.job.JobConfigs.args": "flagged",
    "model.job.JobConfigs.configs": "job-config",
    "model.job.JobConfigs.params": "parameter",
    "model.requests.GivenCredentials.password": "bad",
    "model.requests.PasswordLogin.password": "login",
    "model.cloud.LoggedIn.token": "token",
    "model.requests.NewCluster.cluster_configs": "config",
    "model.requests.NewClusterTemplate.cluster_configs": "template-config",
    "model.requests.NewNodeGroup.node_configs": "group-config",
    "model.requests.NewNodeGroupTemplate.node_configs": "template-config",
    "model.template.ClusterTemplate.cluster_configs": "template-config",
    "model.template.NodeGroupTemplate.node_configs": "template-config",
    "model.template.NodeShape.node_configs": "template-config",
    "model.template.TemplateNodeGroup.node_configs": "template-config",
    "model.trust.LooseTrust.trust_id": "trust",
    "ports.cloud.Access.token": "token",
    "ports.cloud.Access.trust_id": "trust",
    "ports.machines.Host.private_key": "management key",
    "provisioning.distributions.spi.Command.stdin": "cluster-config",
    "provisioning.distributions.spi.Machine.configs": "group-config",
    "provisioning.distributions.spi.WriteFile.content": "cluster-config",
    "provisioning.decide.steps.DeleteTrust.trust_id": "trust",
    "settings.CloudSettings.application_credential_id": "command setting",
    "settings.CloudSettings.application_credential_secret": "command setting",
    "settings.CloudSettings.password": "user",
    "settings.Database.url": "command database",
    "settings.Embedded.password": "user",
    "store.sealer.Keys.seals": "seal key",
    "workflow.act.containers.Output.secrets": "source",
    "workflow.decide.spark_job.Program.args": "flagged",
    "workflow.decide.spark_job.Program.params": "parameter",
}
"""Field -> the canary that is put there. Their repr must not show them."""

HARMLESS: Mapping[str, str] = {
    "cli.image_bake_plan.Found.keypair": "a name",
    "cli.bundle.Kind.key": "a word of the API",
    "cli.orphan_search.Rows.job_credentials": "names",
    "cli.orphan_search.Rows.trusts": "ids, for the command whose work is to name them",
    "clients.tokens.Token.is_job": "yes or no",
    "clients.tokens.Token.is_trust": "yes or no",
    "model.cloud.Caller.is_trust": "yes or no",
    "model.cloud.KeyPair.public_key": "public",
    "model.cloud.NewServer.keypair": "a name",
    "model.cluster.Cluster.management_public_key": "public",
    "model.cluster.Cluster.user_keypair_id": "a name",
    "model.cluster.Instance.host_key": "public",
    "model.job.DataSource.credentials": "a record, see its own fields",
    "model.job.Execution.job_configs": "a record, see its own fields",
    "model.job.JobBinary.extra": "a record, see its own fields",
    "model.requests.ExecuteRequest.job_configs": "a record, see its own fields",
    "model.requests.NewCluster.user_keypair_id": "a name",
    "model.requests.NewDataSource.credentials": "a record, see its own fields",
    "model.requests.NewJobBinary.extra": "a record, see its own fields",
    "ports.machines.CommandResult.host_key": "public",
    "ports.machines.Host.host_key": "public",
    "provisioning.decide.facts.Facts.keypair": "public",
    "provisioning.decide.facts.Facts.keypairs": "names",
    "provisioning.act.perform.Ports.sealer": "an object without a repr of its own",
    "provisioning.decide.steps.Step.key": "names a step",
    "service.Outside.credentials": "an object without a repr of its own",
    "daemon.Outside.sealer": "an object without a repr of its own",
    "store.family.Scope.sealer": "an object without a repr of its own",
    "provisioning.distributions.spi.WriteFile.token": "yes or no",
    "resources.dependencies.ApiServices.tokens": "a record without a repr of its key",
    "settings.CloudSettings.job_credentials": "one of two words",
    "settings.CloudSettings.trust_roles": "names",
    "settings.Console.password_login": "yes or no",
    "settings.Embedded.token_ttl_s": "a time",
    "settings.Limits.idempotency_keys": "a number",
    "settings.Server.hide_credentials": "yes or no",
    "settings.Server.trusted_proxies": "addresses",
    "settings.Server.seal_key": "the name of a file",
    "settings.Workflow.job_credential_s": "a time",
    "store.family.Table.sealed": "the name of a column",
    "store.offline.archive.Manifest.key": "a mark that tells nothing of the key",
    "store.offline.shape.TableShape.key": "names of columns",
    "workflow.decide.job_credentials.Login.credential": "a record, see its own fields",
    "workflow.decide.document.Work.configs": "a record, see its own fields",
}
"""Field -> why it may be shown."""

LOOSE: Mapping[str, str] = {
    "the key that seals": "seal key",
    "content of an internal binary": "binary",
    "a token of any shape in X-Auth-Token": "token",
    "the account of a job binary": "extra",
    "a password in the URL of a source or a binary": "url",
    "a password in the URL of an argument": "userinfo",
    "a secret that is assigned in an argument": "assigned",
    "a secret that is assigned in a parameter": "option",
    "a property of the launcher": "launcher-config",
    "a property of the engine": "engine-config",
    "a secret in the query of a request": "query",
    "a text in the place of credentials": "text",
    "a password in cloud.auth_url": "command auth_url",
}
"""What holds a secret and is no field of that kind -> the canary that is put there."""


def found() -> Iterator[tuple[str, attrs.Attribute[object]]]:
    """Every field of svcd's records that counts, by its name without `svcd.`."""
    for module in pkgutil.walk_packages(svcd.__path__, "svcd."):
        if module.name.startswith(_LEFT_OUT) or module.name.endswith("__main__"):
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if not isinstance(kind, type) or kind.__module__ != module.name:
                continue
            if not attrs.has(kind):
                continue
            for each in attrs.fields(kind):
                if each.inherited:
                    continue
                if SOUNDS.search(each.name) or "Secret" in str(each.type):
                    name = f"{module.name}.{kind.__name__}.{each.name}"
                    yield name.removeprefix("svcd."), each

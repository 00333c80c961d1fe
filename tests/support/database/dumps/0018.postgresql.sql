CREATE TABLE public.changes (
    kind text NOT NULL COLLATE pg_catalog."C",
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL,
    first bigint NOT NULL,
    version integer NOT NULL,
    deleted integer NOT NULL,
    expires integer NOT NULL
);
CREATE TABLE public.cluster_events (
    cluster_id text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    record text NOT NULL
);
CREATE TABLE public.cluster_templates (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    plugin_name text NOT NULL COLLATE pg_catalog."C",
    engine_version text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    refs text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    wire text NOT NULL
);
CREATE TABLE public.clusters (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    plugin_name text NOT NULL COLLATE pg_catalog."C",
    engine_version text NOT NULL COLLATE pg_catalog."C",
    cluster_template_id text COLLATE pg_catalog."C",
    default_image_id text NOT NULL COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    is_transient integer NOT NULL,
    generation integer NOT NULL,
    settled_generation integer NOT NULL,
    version integer NOT NULL,
    created_at text NOT NULL COLLATE pg_catalog."C",
    refs text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    wire text NOT NULL,
    used integer DEFAULT 0 NOT NULL,
    name_key text COLLATE pg_catalog."C",
    instances integer DEFAULT 0 NOT NULL,
    accepted_at text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C"
);
CREATE TABLE public.daemons (
    id text NOT NULL COLLATE pg_catalog."C",
    about text NOT NULL,
    until_s double precision NOT NULL,
    knows integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.data_sources (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    sealed text
);
CREATE TABLE public.execution_log_pieces (
    execution_id text NOT NULL COLLATE pg_catalog."C",
    start_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    size integer NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.execution_logs (
    execution_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    version integer NOT NULL,
    start_offset bigint NOT NULL,
    end_offset bigint NOT NULL,
    complete integer NOT NULL,
    size integer NOT NULL,
    saved_at text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL
);
CREATE TABLE public.executions (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    job_id text NOT NULL COLLATE pg_catalog."C",
    cluster_id text COLLATE pg_catalog."C",
    input_id text COLLATE pg_catalog."C",
    output_id text COLLATE pg_catalog."C",
    status text NOT NULL COLLATE pg_catalog."C",
    ended integer NOT NULL,
    hidden integer NOT NULL,
    version integer NOT NULL,
    created_at text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    wire text NOT NULL
);
CREATE TABLE public.feed (
    id integer NOT NULL,
    epoch text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
);
CREATE TABLE public.feed_cuts (
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
);
CREATE TABLE public.feed_marks (
    at text NOT NULL COLLATE pg_catalog."C",
    number bigint NOT NULL
);
CREATE TABLE public.internals (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    upload_id text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    size bigint DEFAULT 0 NOT NULL
);
CREATE TABLE public.job_binaries (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    url text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    sealed text
);
CREATE TABLE public.job_credentials (
    name text NOT NULL COLLATE pg_catalog."C",
    execution_id text NOT NULL COLLATE pg_catalog."C",
    cluster_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    sealed text NOT NULL,
    asked_at text NOT NULL COLLATE pg_catalog."C",
    expires_at text NOT NULL COLLATE pg_catalog."C",
    due_at text NOT NULL COLLATE pg_catalog."C",
    tries integer NOT NULL,
    trouble text NOT NULL
);
CREATE TABLE public.jobs (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    refs text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL
);
CREATE TABLE public.kept_answers (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL COLLATE pg_catalog."C",
    sealed text NOT NULL
);
CREATE TABLE public.leases (
    shard integer NOT NULL,
    holder text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    free_s double precision NOT NULL
);
CREATE TABLE public.loose_trusts (
    id text NOT NULL COLLATE pg_catalog."C",
    cluster_id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    trustor_id text NOT NULL COLLATE pg_catalog."C",
    mark text NOT NULL COLLATE pg_catalog."C",
    trust_id text NOT NULL COLLATE pg_catalog."C",
    doomed integer NOT NULL,
    asked_at text NOT NULL COLLATE pg_catalog."C",
    due_at text NOT NULL COLLATE pg_catalog."C",
    tries integer NOT NULL,
    trouble text NOT NULL
);
CREATE TABLE public.node_group_templates (
    id text NOT NULL COLLATE pg_catalog."C",
    tenant_id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    plugin_name text NOT NULL COLLATE pg_catalog."C",
    engine_version text NOT NULL COLLATE pg_catalog."C",
    flavor_id text NOT NULL COLLATE pg_catalog."C",
    created_at text NOT NULL COLLATE pg_catalog."C",
    record text NOT NULL,
    wire text NOT NULL
);
CREATE TABLE public.pieces (
    upload_id text NOT NULL COLLATE pg_catalog."C",
    number integer NOT NULL,
    content bytea NOT NULL
);
CREATE TABLE public.schema_version (
    number integer NOT NULL,
    applied_at text NOT NULL,
    serves integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.seals (
    id integer NOT NULL,
    sealed text NOT NULL
);
CREATE TABLE public.uploads (
    id text NOT NULL COLLATE pg_catalog."C",
    holder text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    tenant_id text DEFAULT ''::text NOT NULL COLLATE pg_catalog."C",
    size bigint DEFAULT 0 NOT NULL
);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/1', 'demo', 4, 4, 1, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/10', 'demo', 20, 20, 10, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/11', 'demo', 22, 22, 11, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/12', 'demo', 23, 23, 12, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/13', 'demo', 24, 24, 13, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/14', 'demo', 26, 26, 14, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/15', 'demo', 27, 27, 15, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/16', 'demo', 28, 28, 16, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/17', 'demo', 30, 30, 17, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/18', 'demo', 31, 31, 18, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/19', 'demo', 33, 33, 19, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/2', 'demo', 6, 6, 2, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/20', 'demo', 35, 35, 20, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/21', 'demo', 36, 36, 21, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/22', 'demo', 38, 38, 22, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/23', 'demo', 39, 39, 23, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/24', 'demo', 40, 40, 24, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/25', 'demo', 41, 41, 25, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/26', 'demo', 43, 43, 26, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/3', 'demo', 8, 8, 3, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/4', 'demo', 11, 11, 4, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/5', 'demo', 12, 12, 5, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/6', 'demo', 13, 13, 6, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/7', 'demo', 16, 16, 7, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/8', 'demo', 17, 17, 8, 0, 1);
INSERT INTO public.changes VALUES ('cluster_events', '0000000d-e6f4-490b-9a16-4106cf6a659e/9', 'demo', 18, 18, 9, 0, 1);
INSERT INTO public.changes VALUES ('cluster_templates', '00000009-c17c-4279-a3c6-612f48268673', 'demo', 2, 2, 1, 0, 0);
INSERT INTO public.changes VALUES ('clusters', '0000000d-e6f4-490b-9a16-4106cf6a659e', 'demo', 42, 3, 15, 0, 0);
INSERT INTO public.changes VALUES ('data_sources', '00000026-3405-495c-8a50-06c1ec188efb', 'demo', 47, 47, 1, 0, 0);
INSERT INTO public.changes VALUES ('data_sources', '00000027-9a6a-4f92-8ca7-4147f6be1f72', 'demo', 48, 48, 1, 0, 0);
INSERT INTO public.changes VALUES ('job_binaries', '00000024-1ff3-4849-b4e1-357d4a84eb03', 'demo', 45, 45, 1, 0, 0);
INSERT INTO public.changes VALUES ('job_binaries', '0000002a-5129-4b7c-a288-e1a5cc457821', 'demo', 63, 63, 1, 0, 0);
INSERT INTO public.changes VALUES ('job_binary_internals', '00000023-8d1f-49b7-8d2b-9deb1beb3711', 'demo', 44, 44, 1, 0, 0);
INSERT INTO public.changes VALUES ('job_binary_internals', 'pieces', 'demo', 65, 65, 1, 0, 0);
INSERT INTO public.changes VALUES ('job_executions', '00000028-49a3-480e-966e-12778c1745a7', 'demo', 61, 49, 8, 0, 0);
INSERT INTO public.changes VALUES ('job_executions', '00000029-98a6-416d-9775-336d71eacd05', 'demo', 64, 56, 7, 0, 0);
INSERT INTO public.changes VALUES ('jobs', '00000025-d080-466e-952f-233a8c25166a', 'demo', 46, 46, 1, 0, 0);
INSERT INTO public.changes VALUES ('node_group_templates', '00000008-23a7-411a-8133-287637ebdcd9', 'demo', 1, 1, 1, 0, 0);
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 1, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"request","outcome":"accepted","text":"create with fake 0.1: master 1, worker 2","until":"2026-01-01 00:30:00.000000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 2, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"Spawning","outcome":"started","until":"2026-01-01 00:30:00.000000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 3, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create security group","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 4, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 5, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 6, '{"at":"2026-01-01 00:00:00.000000","generation":1,"step":"create server","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.000000","waited_for":{"machine":"","step":"create security group"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 7, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-master-001","step":"create server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 8, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-001","step":"create server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 9, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"wait for server","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.000000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"create server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 10, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Preparing","outcome":"started","until":"2026-01-01 00:15:00.100000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 11, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 12, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 13, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"log in","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"wait for server"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 14, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 15, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 16, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"prepare machine","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"log in"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 17, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Configuring","outcome":"started","until":"2026-01-01 00:10:00.100000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 18, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"configure","outcome":"started","until":"2026-01-01 00:02:00.100000","began":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"prepare machine"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 19, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"configure","outcome":"done","text":"in 0.0 s","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"mine-worker-002","step":"prepare machine"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 20, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Starting","outcome":"started","until":"2026-01-01 00:15:00.100000"}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 21, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start","outcome":"started","until":"2026-01-01 00:02:00.100000","began":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 22, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start namenode, resourcemanager, oozie, historyserver","machine":"mine-master-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 23, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start datanode, nodemanager","machine":"mine-worker-001","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 24, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start datanode, nodemanager","machine":"mine-worker-002","outcome":"done","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 25, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"start","outcome":"done","text":"in 0.0 s","began":"2026-01-01 00:00:00.100000","ended":"2026-01-01 00:00:00.100000","waited_for":{"machine":"","step":"configure"}}');
INSERT INTO public.cluster_events VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 26, '{"at":"2026-01-01 00:00:00.100000","generation":1,"step":"Active","outcome":"done"}');
INSERT INTO public.cluster_templates VALUES ('00000009-c17c-4279-a3c6-612f48268673', 'demo', 'small', 'fake', '0.1', '2026-01-01 00:00:00.000000', ' 00000008-23a7-411a-8133-287637ebdcd9 ', '{"anti_affinity":[],"cluster_configs":{},"created_at":"2026-01-01 00:00:00.000000","default_image_id":"00000000-0000-4000-8000-000000000002","description":null,"engine_version":"0.1","id":"00000009-c17c-4279-a3c6-612f48268673","name":"small","neutron_management_network":null,"node_groups":[{"count":1,"name":"master","node_group_template_id":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{},"node_processes":["namenode","resourcemanager","oozie","historyserver"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10},{"count":2,"name":"worker","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}],"plugin_name":"fake","tenant_id":"demo","updated_at":null}', '{"id":"00000009-c17c-4279-a3c6-612f48268673","name":"small","description":"","plugin_name":"fake","engine_version":"0.1","cluster_configs":{},"anti_affinity":[],"node_groups":[{"name":"master","count":1,"node_processes":["namenode","resourcemanager","oozie","historyserver"],"flavor_id":"2","node_configs":{},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk"},{"name":"worker","count":2,"node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9"}],"default_image_id":"00000000-0000-4000-8000-000000000002"}');
INSERT INTO public.clusters VALUES ('0000000d-e6f4-490b-9a16-4106cf6a659e', 'demo', 'mine', 'fake', '0.1', '00000009-c17c-4279-a3c6-612f48268673', '00000000-0000-4000-8000-000000000002', 'Active', 0, 1, 1, 15, '2026-01-01 00:00:00.000000', ' 00000008-23a7-411a-8133-287637ebdcd9 ', '{"accepted_at":null,"anti_affinity":[],"cluster_configs":{},"cluster_template_id":"00000009-c17c-4279-a3c6-612f48268673","created_at":"2026-01-01 00:00:00.000000","daemon_user":"svcd","default_image_id":"00000000-0000-4000-8000-000000000002","description":"it''s \"100%\" :name \\ ü 漢 🐍","desired":"active","emptied":false,"engine_version":"0.1","force_delete":false,"generation":1,"id":"0000000d-e6f4-490b-9a16-4106cf6a659e","info":{"HDFS":{"NameNode":"hdfs://127.1.0.10:8020"},"JobFlow":{"Oozie":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e"}},"is_transient":false,"management_private_key":"f1:gAAAAABrCCHPn84XfeMqeYTihHXgaDSjUtpJ-MGU3TzmkBmUK04eTg2UvonpCBktUFOkbenx5CTTxdk8eUd1hXhYHS1iws4H_sj2ZjBfkWNJNtuPr60ccFj5qiMgjOjLDQrdyJILt2MsfLPRaifuPUPRlqZPnfdFuXoUfm6UOV30EE6dWNgDcY3_EAARjnHqYy2oWM1g_XJ_HUqVz8GCIHLQ3xz9jo8YwXgXIWug_0q2FQ1qr9Bv33v-A_N1czFxB5-sKIPlHA9_1ShCyrtARUVnu6TcUqyaxg9kNJflCVJtvHPvb0JCBF8I-8NSNjRXxO5l6h8a79j9UESxyJeJQ-BVTWgH6U1zj-MieT54FGdxDRhfA4qGh-PlSkfxal1OMilvRNh41N2V6TH5IRJwD-QIjgO03yqqZHUkyjhqXAb5vZlpo89M0QIeIxXtj6l4FE0REMpiGkFzqa4u330GMK4ZMdSwiihrbB48V-X0giDX2D4ltW3BoNaMfZn51dqWtBCb2ASlcb5IpkPhPhXlPmuPgasnzCxh-FauFVRIN8jagJGVm8zkT7SIJ9GsG4fUmshUBRcWrft_gyU6uUljuwf3z78U-n3PZw==","management_public_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINGfa9ACRcRZUDiDqGoKnH7xN5bq4KAruaSNrRAyt2/R svcd mine","name":"mine","neutron_management_network":null,"node_groups":[{"created_at":"2026-01-01 00:00:00.000000","flavor_ram_mib":2048,"flavor_vcpus":1,"instances":[{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJpOli2j35ycNUrlITrEmqeaQbaaNhtCkhaEQgrYVel7","index":1,"instance_id":"0000000e-1948-4dec-8f65-d4d9259f4329","instance_name":"mine-master-001","internal_ip":"127.1.0.10","leaving":false,"management_ip":"127.1.0.10","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"00000019-6619-4cb1-9710-37d1b83e90ec","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]}],"updated_at":null,"count":1,"name":"master","node_group_template_id":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{},"node_processes":["namenode","resourcemanager","oozie","historyserver"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10},{"created_at":"2026-01-01 00:00:00.000000","flavor_ram_mib":2048,"flavor_vcpus":1,"instances":[{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIF+Mb7CkcYzlzq31YsuR7hGz8yqvZ8s4+0H9U73o+GiO","index":1,"instance_id":"0000000f-e61a-441c-92e0-c8b2bad640fb","instance_name":"mine-worker-001","internal_ip":"127.1.0.11","leaving":false,"management_ip":"127.1.0.11","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"0000001c-b421-4aeb-9340-97cabaf3897a","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]},{"attempts":0,"created_at":"2026-01-01 00:00:00.000000","facts":{"cores":4,"home":"/home/svcd","memory_mib":8192,"prefix":"/opt/svcd/vanilla","root":"","software":[]},"floating_ip_id":null,"host_key":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAII7N1DRUSW9tYJCA069kTK9ESpJsFDybEFrdySK+C8Du","index":2,"instance_id":"00000010-5487-4e1e-af19-922ad9b8a714","instance_name":"mine-worker-002","internal_ip":"127.1.0.12","leaving":false,"management_ip":"127.1.0.12","requested_at":"2026-01-01 00:00:00.000000","retry_at":null,"server_id":"0000001f-cd9d-4b7d-a47a-8333f7b0b7d2","status":"ACTIVE","step":"started","updated_at":null,"volumes":[]}],"updated_at":null,"count":2,"name":"worker","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}],"openings":["2222 0.0.0.0/0"],"own_logins":true,"plugin_name":"fake","security_group_id":"00000014-8d72-4104-b773-83c13458a748","server_group_id":null,"settled_generation":1,"ssh_port":2222,"status":"Active","status_description":"","status_since":"2026-01-01 00:00:00.100000","tenant_id":"demo","trust_id":null,"trustor_id":null,"unwell":null,"updated_at":"2026-01-01 00:00:00.100000","user_keypair_id":"demo","username":"svcd","version":15}', '{"id":"0000000d-e6f4-490b-9a16-4106cf6a659e","name":"mine","description":"it''s \"100%\" :name \\ ü 漢 🐍","status":"Active","status_description":"","info":{"HDFS":{"NameNode":"hdfs://127.1.0.10:8020"},"JobFlow":{"Oozie":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e"}},"plugin_name":"fake","engine_version":"0.1","default_image_id":"00000000-0000-4000-8000-000000000002","cluster_configs":{},"anti_affinity":[],"is_transient":false,"node_groups":[{"name":"master","count":1,"node_processes":["namenode","resourcemanager","oozie","historyserver"],"flavor_id":"2","node_configs":{},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","created":"2026-01-01T00:00:00","updated":"2026-01-01T00:00:00","instances":[{"instance_name":"mine-master-001","instance_id":"0000000e-1948-4dec-8f65-d4d9259f4329","volumes":[],"internal_ip":"127.1.0.10","management_ip":"127.1.0.10","server_id":"00000019-6619-4cb1-9710-37d1b83e90ec","status":"ACTIVE"}]},{"name":"worker","count":2,"node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk","node_group_template_id":"00000008-23a7-411a-8133-287637ebdcd9","created":"2026-01-01T00:00:00","updated":"2026-01-01T00:00:00","instances":[{"instance_name":"mine-worker-001","instance_id":"0000000f-e61a-441c-92e0-c8b2bad640fb","volumes":[],"internal_ip":"127.1.0.11","management_ip":"127.1.0.11","server_id":"0000001c-b421-4aeb-9340-97cabaf3897a","status":"ACTIVE"},{"instance_name":"mine-worker-002","instance_id":"00000010-5487-4e1e-af19-922ad9b8a714","volumes":[],"internal_ip":"127.1.0.12","management_ip":"127.1.0.12","server_id":"0000001f-cd9d-4b7d-a47a-8333f7b0b7d2","status":"ACTIVE"}]}],"created_at":"2026-01-01 00:00:00.000000","updated_at":"2026-01-01 00:00:00.100000","cluster_template_id":"00000009-c17c-4279-a3c6-612f48268673","user_keypair_id":"demo"}', 0, 'mine', 3, '2026-01-01 00:00:00.000000');
INSERT INTO public.data_sources VALUES ('00000026-3405-495c-8a50-06c1ec188efb', 'demo', 'data-in', 'objstore', 'objstore://demo.svcd/data/in', '2026-01-01 00:00:01.000000', '{"created_at":"2026-01-01 00:00:01.000000","credentials":null,"description":null,"id":"00000026-3405-495c-8a50-06c1ec188efb","name":"data-in","tenant_id":"demo","type":"objstore","updated_at":null,"url":"objstore://demo.svcd/data/in"}', 'f1:gAAAAABrCCHP5PcXptNUbgxRdHwa0w3QWHklchoHmItbizc8h3693HZAFQJbTx97H0-Y_gKhmoUDLQpUlgjJKDaCH0Zx2DWfPY9RdEayBgp6Sr29HP8JmzaV-dtSFS6M1nL7NhljuTbJULIdMPu6hwpLVzWVG6_98Q==');
INSERT INTO public.data_sources VALUES ('00000027-9a6a-4f92-8ca7-4147f6be1f72', 'demo', 'data-out', 'objstore', 'objstore://demo.svcd/data/out', '2026-01-01 00:00:01.000000', '{"created_at":"2026-01-01 00:00:01.000000","credentials":null,"description":null,"id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","name":"data-out","tenant_id":"demo","type":"objstore","updated_at":null,"url":"objstore://demo.svcd/data/out"}', 'f1:gAAAAABrCCHPibj-Cydsc1tL6RcLGi8bka4A_ho-l8Sf3JjYEK4nwJMW7YiEkU9mkqx13acSgC889Nv92TY8P7IQ0WoA2xnTieMj-NljgQ3oRfYsy4_SE7V-ksiD8V34TmXSUkO02YMG_w6eLa4t8frMmh_UxzspBg==');
INSERT INTO public.execution_log_pieces VALUES ('00000028-49a3-480e-966e-12778c1745a7', 0, 167, 149, '\x789c2d4ec10e823014bbf315ef037cc9367103e2bc001a4dd48318cf035e74266e0798317ebd83d836bd344dabf506c8ddad23586b9d348fb000c6e1601c08262430564ce2b03b36b03f6dcf3084f665c791fa98cd4021198f9c30397affb584c3bbebf196e838f0f42dd087ba305aeffe3591619a9b25a61923cca524e442a9ace32a5d1955c0e55a96755dd5d5fceb076cba2b65');
INSERT INTO public.execution_log_pieces VALUES ('00000029-98a6-416d-9775-336d71eacd05', 0, 274, 219, '\x789c5d8e4d4ec3301085f739c53b0096ec942624256c20a04069594482ad6bbb89a1f120db4188d3e346ac981f69464f6fe66b9a1b1837586770dd34593fce17e0028fd221e77901ceeb5482e3e1b947b7bbdf23cc87c9c66874d2ce21585e709172595233a21f6b58f8529abd664d7af04e07986fa3e668c9fdd9f28a5557b26097a2d0ac2acb355bad0a5d0a2395e6eb1a4fdd76dbde2d50eddb6dfbd277fb1dac3bdf628eb4a921c347828884a3b4a70d14796f54441c0d3e3d0d5e4e200f1b03b48c72b308271a40c734daf08f6a9401137993fd0288ae512c');
INSERT INTO public.execution_logs VALUES ('00000028-49a3-480e-966e-12778c1745a7', 'demo', 3, 0, 167, 1, 149, '2026-01-01 00:00:13.000000', '{"complete":true,"end":0,"execution_id":"00000028-49a3-480e-966e-12778c1745a7","last":"engine","sources":[{"seen":82,"tail":"Thu, 01 Jan 2026 00:00:01 GMT INFO submitted 0000000-260101000001000-oozie-svcd-W\n","title":"engine"}],"start":0,"version":0}');
INSERT INTO public.execution_logs VALUES ('00000029-98a6-416d-9775-336d71eacd05', 'demo', 3, 0, 274, 1, 219, '2026-01-01 00:00:18.000000', '{"complete":true,"end":0,"execution_id":"00000029-98a6-416d-9775-336d71eacd05","last":"engine","sources":[{"seen":82,"tail":"Thu, 01 Jan 2026 00:00:10 GMT INFO submitted 0000001-260101000001000-oozie-svcd-W\n","title":"engine"}],"start":0,"version":0}');
INSERT INTO public.executions VALUES ('00000028-49a3-480e-966e-12778c1745a7', 'demo', '00000025-d080-466e-952f-233a8c25166a', '0000000d-e6f4-490b-9a16-4106cf6a659e', '00000026-3405-495c-8a50-06c1ec188efb', '00000027-9a6a-4f92-8ca7-4147f6be1f72', 'SUCCEEDED', 1, 0, 8, '2026-01-01 00:00:01.000000', '{"attempts":0,"cancel_requested":false,"cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","created_at":"2026-01-01 00:00:01.000000","delete_requested":false,"doubt":null,"end_time":"2026-01-01 00:00:06.000000","failure":null,"id":"00000028-49a3-480e-966e-12778c1745a7","input_id":"00000026-3405-495c-8a50-06c1ec188efb","job_configs":{"args":{},"configs":{},"params":{}},"job_id":"00000025-d080-466e-952f-233a8c25166a","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","progress":1.0,"record":{"appName":"svcd-00000028-49a3-480e-966e-12778c1745a7","externalId":"00000028-49a3-480e-966e-12778c1745a7","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000028-49a3-480e-966e-12778c1745a7</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:06 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000000-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:01 GMT","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Workflow id[0000000-260101000001000-oozie-svcd-W] status[SUCCEEDED]","id":"0000000-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"OK","externalStatus":"SUCCEEDED","externalId":"application_1767225600000_0001","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0001/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"end","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[job-node] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@end","name":"end","type":":END:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:06 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[end] status[OK]"}],"status":"SUCCEEDED","group":null},"retry_at":null,"return_code":0,"staged":true,"start_time":"2026-01-01 00:00:01.000000","status":"SUCCEEDED","submits":1,"submitting":false,"suspended_since":null,"tenant_id":"demo","updated_at":"2026-01-01 00:00:10.000000","version":8,"waiting":null,"workflow_dir":null,"workflow_job_id":"0000000-260101000001000-oozie-svcd-W"}', '{"id":"00000028-49a3-480e-966e-12778c1745a7","job_id":"00000025-d080-466e-952f-233a8c25166a","cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","input_id":"00000026-3405-495c-8a50-06c1ec188efb","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","job_configs":{},"info":{"appName":"svcd-00000028-49a3-480e-966e-12778c1745a7","externalId":"00000028-49a3-480e-966e-12778c1745a7","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000028-49a3-480e-966e-12778c1745a7</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000028-49a3-480e-966e-12778c1745a7/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:06 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000000-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:01 GMT","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Workflow id[0000000-260101000001000-oozie-svcd-W] status[SUCCEEDED]","id":"0000000-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:01 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"OK","externalStatus":"SUCCEEDED","externalId":"application_1767225600000_0001","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0001/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"end","startTime":"Thu, 01 Jan 2026 00:00:01 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[job-node] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000000-260101000001000-oozie-svcd-W@end","name":"end","type":":END:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:06 GMT","endTime":"Thu, 01 Jan 2026 00:00:06 GMT","toString":"Action name[end] status[OK]"}],"status":"SUCCEEDED","group":null},"workflow_job_id":"0000000-260101000001000-oozie-svcd-W","return_code":0,"progress":1.0,"tenant_id":"demo","start_time":"2026-01-01T00:00:01","end_time":"2026-01-01T00:00:06","created_at":"2026-01-01 00:00:01.000000","updated_at":"2026-01-01 00:00:10.000000"}');
INSERT INTO public.executions VALUES ('00000029-98a6-416d-9775-336d71eacd05', 'demo', '00000025-d080-466e-952f-233a8c25166a', '0000000d-e6f4-490b-9a16-4106cf6a659e', '00000026-3405-495c-8a50-06c1ec188efb', '00000027-9a6a-4f92-8ca7-4147f6be1f72', 'KILLED', 1, 0, 7, '2026-01-01 00:00:10.000000', '{"attempts":0,"cancel_requested":false,"cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","created_at":"2026-01-01 00:00:10.000000","delete_requested":false,"doubt":null,"end_time":"2026-01-01 00:00:15.000000","failure":{"code":"EXCEPTION","step":"job-node","text":"asked to fail; correct the program or its data; the log of this job execution has more"},"id":"00000029-98a6-416d-9775-336d71eacd05","input_id":"00000026-3405-495c-8a50-06c1ec188efb","job_configs":{"args":{},"configs":{"svcd.fake.outcome":"fail"},"params":{}},"job_id":"00000025-d080-466e-952f-233a8c25166a","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","progress":null,"record":{"appName":"svcd-00000029-98a6-416d-9775-336d71eacd05","externalId":"00000029-98a6-416d-9775-336d71eacd05","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000029-98a6-416d-9775-336d71eacd05</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:15 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000001-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:10 GMT","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Workflow id[0000001-260101000001000-oozie-svcd-W] status[KILLED]","id":"0000001-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"JA018","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"ERROR","externalStatus":"FAILED/KILLED","externalId":"application_1767225600000_0002","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0002/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property><ns0:property><ns0:name>svcd.fake.outcome</ns0:name><ns0:value>fail</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"fail","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[job-node] status[ERROR]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"E0729","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@fail","name":"fail","type":":KILL:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"${wf:errorMessage(wf:lastErrorNode())}","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:15 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[fail] status[OK]"}],"status":"KILLED","group":null},"retry_at":null,"return_code":null,"staged":true,"start_time":"2026-01-01 00:00:10.000000","status":"KILLED","submits":1,"submitting":false,"suspended_since":null,"tenant_id":"demo","updated_at":"2026-01-01 00:00:15.000000","version":7,"waiting":null,"workflow_dir":null,"workflow_job_id":"0000001-260101000001000-oozie-svcd-W"}', '{"id":"00000029-98a6-416d-9775-336d71eacd05","job_id":"00000025-d080-466e-952f-233a8c25166a","cluster_id":"0000000d-e6f4-490b-9a16-4106cf6a659e","input_id":"00000026-3405-495c-8a50-06c1ec188efb","output_id":"00000027-9a6a-4f92-8ca7-4147f6be1f72","job_configs":{"configs":{"svcd.fake.outcome":"fail"},"args":{},"params":{}},"info":{"appName":"svcd-00000029-98a6-416d-9775-336d71eacd05","externalId":"00000029-98a6-416d-9775-336d71eacd05","conf":"<configuration>\r\n  <property>\r\n    <name>jobTracker</name>\r\n    <value>127.1.0.10:8032</value>\r\n  </property>\r\n  <property>\r\n    <name>nameNode</name>\r\n    <value>hdfs://127.1.0.10:8020</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.use.system.libpath</name>\r\n    <value>true</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.application.path</name>\r\n    <value>hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml</value>\r\n  </property>\r\n  <property>\r\n    <name>oozie.wf.external.id</name>\r\n    <value>00000029-98a6-416d-9775-336d71eacd05</value>\r\n  </property>\r\n  <property>\r\n    <name>user.name</name>\r\n    <value>svcd</value>\r\n  </property>\r\n</configuration>","run":0,"acl":null,"appPath":"hdfs://127.1.0.10:8020/user/svcd/svcd/00000029-98a6-416d-9775-336d71eacd05/workflow.xml","parentId":null,"lastModTime":"Thu, 01 Jan 2026 00:00:15 GMT","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/oozie?job=0000001-260101000001000-oozie-svcd-W","createdTime":"Thu, 01 Jan 2026 00:00:10 GMT","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Workflow id[0000001-260101000001000-oozie-svcd-W] status[KILLED]","id":"0000001-260101000001000-oozie-svcd-W","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","user":"svcd","actions":[{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":null,"externalChildIDs":null,"errorCode":null,"retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@:start:","name":":start:","type":":START:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"","transition":"job-node","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:10 GMT","toString":"Action name[:start:] status[OK]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"127.1.0.10:8032","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"JA018","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@job-node","name":"job-node","type":"pig","status":"ERROR","externalStatus":"FAILED/KILLED","externalId":"application_1767225600000_0002","consoleUrl":"http://cloud.test:8387/engine/0000000d-e6f4-490b-9a16-4106cf6a659e/yarn/proxy/application_1767225600000_0002/","conf":"<ns0:pig xmlns:ns0=\"uri:oozie:workflow:0.5\"><ns0:job-tracker>${jobTracker}</ns0:job-tracker><ns0:name-node>${nameNode}</ns0:name-node><ns0:configuration><ns0:property><ns0:name>fs.objstore.auth.url</ns0:name><ns0:value>http://cloud.test:8387/identity/v3</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.container.demo.svcd.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.impl</ns0:name><ns0:value>org.svcd.objstore.ObjStoreFileSystem</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.interface</ns0:name><ns0:value>public</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.project</ns0:name><ns0:value>demo</ns0:value></ns0:property><ns0:property><ns0:name>fs.objstore.refused</ns0:name><ns0:value>identity: http://cloud.test:8387/identity/v3 refuses user ''demo'' in project ''demo'': unknown user, wrong password, or no role there; svcd does not try this password again before 2026-01-01T00:05:01 UTC</ns0:value></ns0:property><ns0:property><ns0:name>oozie.launcher.max.attempts</ns0:name><ns0:value>1</ns0:value></ns0:property><ns0:property><ns0:name>svcd.fake.outcome</ns0:name><ns0:value>fail</ns0:value></ns0:property></ns0:configuration><ns0:script>count.pig</ns0:script><ns0:param>INPUT=objstore://demo.svcd/data/in</ns0:param><ns0:param>OUTPUT=objstore://demo.svcd/data/out</ns0:param></ns0:pig>","transition":"fail","startTime":"Thu, 01 Jan 2026 00:00:10 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[job-node] status[ERROR]"},{"cred":null,"userRetryMax":0,"userRetryCount":0,"userRetryInterval":10,"trackerUri":"-","data":null,"errorMessage":"asked to fail","externalChildIDs":null,"errorCode":"E0729","retries":0,"stats":null,"id":"0000001-260101000001000-oozie-svcd-W@fail","name":"fail","type":":KILL:","status":"OK","externalStatus":"OK","externalId":"-","consoleUrl":"-","conf":"${wf:errorMessage(wf:lastErrorNode())}","transition":null,"startTime":"Thu, 01 Jan 2026 00:00:15 GMT","endTime":"Thu, 01 Jan 2026 00:00:15 GMT","toString":"Action name[fail] status[OK]"}],"status":"KILLED","group":null,"failure":{"code":"EXCEPTION","step":"job-node","text":"asked to fail; correct the program or its data; the log of this job execution has more"}},"workflow_job_id":"0000001-260101000001000-oozie-svcd-W","return_code":null,"progress":null,"tenant_id":"demo","start_time":"2026-01-01T00:00:10","end_time":"2026-01-01T00:00:15","created_at":"2026-01-01 00:00:10.000000","updated_at":"2026-01-01 00:00:15.000000"}');
INSERT INTO public.feed VALUES (1, '2026-01-01 00:00:00.000000', 65);
INSERT INTO public.internals VALUES ('00000023-8d1f-49b7-8d2b-9deb1beb3711', 'demo', 'count.pig', '00000022-7d41-4602-aece-328bff7b118e', '2026-01-01 00:00:01.000000', '{"created_at":"2026-01-01 00:00:01.000000","datasize":16,"digest":"9b73c82270f57f6b33082759ff4fb2b3c51a3b461adffc71e50af9763c59ff7f","id":"00000023-8d1f-49b7-8d2b-9deb1beb3711","name":"count.pig","tenant_id":"demo","updated_at":null}', 16);
INSERT INTO public.internals VALUES ('pieces', 'demo', 'in-pieces.jar', 'pieces', '2026-01-01 00:00:25.000000', '{"created_at":"2026-01-01 00:00:25.000000","datasize":20,"digest":"63088ddf48e631820a55683a834534bda1c7b6280bcd09b099b6372aab96a4fb","id":"pieces","name":"in-pieces.jar","tenant_id":"demo","updated_at":null}', 20);
INSERT INTO public.job_binaries VALUES ('00000024-1ff3-4849-b4e1-357d4a84eb03', 'demo', 'count.pig', 'internaldb://00000023-8d1f-49b7-8d2b-9deb1beb3711', '2026-01-01 00:00:01.000000', '{"created_at":"2026-01-01 00:00:01.000000","description":null,"extra":null,"id":"00000024-1ff3-4849-b4e1-357d4a84eb03","name":"count.pig","tenant_id":"demo","updated_at":null,"url":"internaldb://00000023-8d1f-49b7-8d2b-9deb1beb3711"}', NULL);
INSERT INTO public.job_binaries VALUES ('0000002a-5129-4b7c-a288-e1a5cc457821', 'demo', 'kept-outside.jar', 'objstore-internal://box/kept.jar', '2026-01-01 00:00:15.000000', '{"created_at":"2026-01-01 00:00:15.000000","description":null,"extra":null,"id":"0000002a-5129-4b7c-a288-e1a5cc457821","name":"kept-outside.jar","tenant_id":"demo","updated_at":null,"url":"objstore-internal://box/kept.jar"}', 'f1:gAAAAABrCCHPvDVXg4agonO2_y4uvwPiGJsiDHRnqfwmMCtiqnVodHSk3PCeOIRrUkypXsZcGiAiwJzrWCCo2wDU99sWYkXArcLZKKPbZgmpuZUdRWfxxyvGbiFBhAjbFqk_G96w98CMaj3KfDpUSvw1AF2-jEAGqw==');
INSERT INTO public.job_credentials VALUES ('svcd:noted', 'gone', '0000000d-e6f4-490b-9a16-4106cf6a659e', 'demo', 'f1:gAAAAABrCCHPE8juX9AX1Q8GxeHKIzkfX1mFTswdnlPdSvZlZEQxkWd_h2kbDsOYaSChk9D_LIritEPi5XqxnWeEwX7Q5qQHmsj_tB1HQJqCZl9d6gI-G-kbovoFal7Vz0h_Q-0asKXG9T4bL9ytAd2H4ohKNH9YWC_eM0-yl5NznVd8uwGFBZdJmkIt-z2aAumdNAWQ129i', '2026-01-01 00:00:25.000000', '2026-01-01 00:10:25.000000', '2026-01-01 00:05:25.000000', 0, 'it''s "100%" :name \ ü 漢 🐍');
INSERT INTO public.jobs VALUES ('00000025-d080-466e-952f-233a8c25166a', 'demo', 'count', 'Pig', '2026-01-01 00:00:01.000000', ' 00000024-1ff3-4849-b4e1-357d4a84eb03 ', '{"created_at":"2026-01-01 00:00:01.000000","description":null,"id":"00000025-d080-466e-952f-233a8c25166a","libs":[],"mains":["00000024-1ff3-4849-b4e1-357d4a84eb03"],"name":"count","tenant_id":"demo","type":"Pig","updated_at":null}');
INSERT INTO public.kept_answers VALUES ('8afd7112601d61a2c975b9d4a958ae897113586574f7728c1d634a1b8ecddadd', 'demo', '2026-01-01 00:00:15.000000', '2341a301c21caf546dbb072e8709b07a1bcecffbfe41de018b43132eb1d9d0d5', 'f1:gAAAAABrCCHPe-igbENtMWV0DMrHl4yXv9a5fS0yykguegD1o-yCuroZR1hXMc3iF_L3LAliIYUvosZlUebYhhiO7kWsfmpepHmauX_7KsWfFIATBXKLO7IHVe0sdhOjPTM58gnvpp7MLrDRINEDP_W8XZT3UDc7gZk3nfBVy3rHKIztENtSMThERN7jTypP099aDdJ176w4lEVTldpbJB3aMPX6E48e0RTzaWxolMjXXZ76t7BnNcq2I54fLaresQCY_vtH89QRqsjuW22bT4ftYquUNqE26cen1hHV5IK0gA8tnjP3jq1Ek5cr4aj7JJLHPh-1as8DYTzO5m-_EIoC6L7kXDFi1McONFfRRllzZvhvsiFTn1M8jIE5bSU7JGwwlK-5N9gB9BCwSuv5jYRPJUC7CB3hRg==');
INSERT INTO public.leases VALUES (0, '', 0, 0);
INSERT INTO public.leases VALUES (1, '', 0, 0);
INSERT INTO public.leases VALUES (2, '', 0, 0);
INSERT INTO public.leases VALUES (3, '', 0, 0);
INSERT INTO public.leases VALUES (4, '', 0, 0);
INSERT INTO public.leases VALUES (5, '', 0, 0);
INSERT INTO public.leases VALUES (6, '', 0, 0);
INSERT INTO public.leases VALUES (7, '', 0, 0);
INSERT INTO public.leases VALUES (8, '', 0, 0);
INSERT INTO public.leases VALUES (9, '', 0, 0);
INSERT INTO public.leases VALUES (10, '', 0, 0);
INSERT INTO public.leases VALUES (11, '', 0, 0);
INSERT INTO public.leases VALUES (12, '', 0, 0);
INSERT INTO public.leases VALUES (13, '', 0, 0);
INSERT INTO public.leases VALUES (14, '', 0, 0);
INSERT INTO public.leases VALUES (15, '', 0, 0);
INSERT INTO public.leases VALUES (16, '', 0, 0);
INSERT INTO public.leases VALUES (17, '', 0, 0);
INSERT INTO public.leases VALUES (18, '', 0, 0);
INSERT INTO public.leases VALUES (19, '', 0, 0);
INSERT INTO public.leases VALUES (20, '', 0, 0);
INSERT INTO public.leases VALUES (21, '', 0, 0);
INSERT INTO public.leases VALUES (22, '', 0, 0);
INSERT INTO public.leases VALUES (23, '', 0, 0);
INSERT INTO public.leases VALUES (24, '', 0, 0);
INSERT INTO public.leases VALUES (25, '', 0, 0);
INSERT INTO public.leases VALUES (26, '', 0, 0);
INSERT INTO public.leases VALUES (27, '', 0, 0);
INSERT INTO public.leases VALUES (28, '', 0, 0);
INSERT INTO public.leases VALUES (29, '', 0, 0);
INSERT INTO public.leases VALUES (30, '', 0, 0);
INSERT INTO public.leases VALUES (31, '', 0, 0);
INSERT INTO public.leases VALUES (32, '', 0, 0);
INSERT INTO public.leases VALUES (33, '', 0, 0);
INSERT INTO public.leases VALUES (34, '', 0, 0);
INSERT INTO public.leases VALUES (35, '', 0, 0);
INSERT INTO public.leases VALUES (36, '', 0, 0);
INSERT INTO public.leases VALUES (37, '', 0, 0);
INSERT INTO public.leases VALUES (38, '', 0, 0);
INSERT INTO public.leases VALUES (39, '', 0, 0);
INSERT INTO public.leases VALUES (40, '', 0, 0);
INSERT INTO public.leases VALUES (41, '', 0, 0);
INSERT INTO public.leases VALUES (42, '', 0, 0);
INSERT INTO public.leases VALUES (43, '', 0, 0);
INSERT INTO public.leases VALUES (44, '', 0, 0);
INSERT INTO public.leases VALUES (45, '', 0, 0);
INSERT INTO public.leases VALUES (46, '', 0, 0);
INSERT INTO public.leases VALUES (47, '', 0, 0);
INSERT INTO public.leases VALUES (48, '', 0, 0);
INSERT INTO public.leases VALUES (49, '', 0, 0);
INSERT INTO public.leases VALUES (50, '', 0, 0);
INSERT INTO public.leases VALUES (51, '', 0, 0);
INSERT INTO public.leases VALUES (52, '', 0, 0);
INSERT INTO public.leases VALUES (53, '', 0, 0);
INSERT INTO public.leases VALUES (54, '', 0, 0);
INSERT INTO public.leases VALUES (55, '', 0, 0);
INSERT INTO public.leases VALUES (56, '', 0, 0);
INSERT INTO public.leases VALUES (57, '', 0, 0);
INSERT INTO public.leases VALUES (58, '', 0, 0);
INSERT INTO public.leases VALUES (59, '', 0, 0);
INSERT INTO public.leases VALUES (60, '', 0, 0);
INSERT INTO public.leases VALUES (61, '', 0, 0);
INSERT INTO public.leases VALUES (62, '', 0, 0);
INSERT INTO public.leases VALUES (63, '', 0, 0);
INSERT INTO public.loose_trusts VALUES ('loose', '0000000d-e6f4-490b-9a16-4106cf6a659e', 'demo', 'somebody', '2142-09-28T14:28:54.000000Z', '', 0, '2026-01-01 00:00:25.000000', '2026-01-01 00:05:25.000000', 0, 'it''s "100%" :name \ ü 漢 🐍');
INSERT INTO public.node_group_templates VALUES ('00000008-23a7-411a-8133-287637ebdcd9', 'demo', 'workers', 'fake', '0.1', '2', '2026-01-01 00:00:00.000000', '{"created_at":"2026-01-01 00:00:00.000000","description":"it''s \"100%\" :name \\ ü 漢 🐍","engine_version":"0.1","id":"00000008-23a7-411a-8133-287637ebdcd9","name":"workers","plugin_name":"fake","tenant_id":"demo","updated_at":null,"flavor_id":"2","floating_ip_pool":null,"node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"node_processes":["datanode","nodemanager"],"volume_mount_prefix":"/volumes/disk","volumes_per_node":0,"volumes_size":10}', '{"id":"00000008-23a7-411a-8133-287637ebdcd9","name":"workers","description":"it''s \"100%\" :name \\ ü 漢 🐍","plugin_name":"fake","engine_version":"0.1","node_processes":["datanode","nodemanager"],"flavor_id":"2","node_configs":{"HDFS":{"dfs.datanode.handler.count":5}},"volumes_per_node":0,"volumes_size":10,"volume_mount_prefix":"/volumes/disk"}');
INSERT INTO public.pieces VALUES ('00000022-7d41-4602-aece-328bff7b118e', 0, '\x2d2d20646f6573206e6f7468696e670a');
INSERT INTO public.pieces VALUES ('cut-short', 0, '\x6e657665722066696e6973686564');
INSERT INTO public.pieces VALUES ('pieces', 0, '\x0001ff');
INSERT INTO public.pieces VALUES ('pieces', 1, '\x');
INSERT INTO public.pieces VALUES ('pieces', 2, '\xc3a427225c25733a6e616d653b0a');
INSERT INTO public.pieces VALUES ('pieces', 3, '\x656e64');
INSERT INTO public.schema_version VALUES (1, '2026-01-01 00:00:00.000000', 1);
INSERT INTO public.schema_version VALUES (2, '2026-01-01 00:00:00.000000', 2);
INSERT INTO public.schema_version VALUES (3, '2026-01-01 00:00:00.000000', 3);
INSERT INTO public.schema_version VALUES (4, '2026-01-01 00:00:00.000000', 4);
INSERT INTO public.schema_version VALUES (5, '2026-01-01 00:00:00.000000', 5);
INSERT INTO public.schema_version VALUES (6, '2026-01-01 00:00:00.000000', 6);
INSERT INTO public.schema_version VALUES (7, '2026-01-01 00:00:00.000000', 7);
INSERT INTO public.schema_version VALUES (8, '2026-01-01 00:00:00.000000', 8);
INSERT INTO public.schema_version VALUES (9, '2026-01-01 00:00:00.000000', 9);
INSERT INTO public.schema_version VALUES (10, '2026-01-01 00:00:00.000000', 10);
INSERT INTO public.schema_version VALUES (11, '2026-01-01 00:00:00.000000', 11);
INSERT INTO public.schema_version VALUES (12, '2026-01-01 00:00:00.000000', 12);
INSERT INTO public.schema_version VALUES (13, '2026-01-01 00:00:00.000000', 13);
INSERT INTO public.schema_version VALUES (14, '2026-01-01 00:00:00.000000', 14);
INSERT INTO public.schema_version VALUES (15, '2026-01-01 00:00:00.000000', 15);
INSERT INTO public.schema_version VALUES (16, '2026-01-01 00:00:00.000000', 16);
INSERT INTO public.schema_version VALUES (17, '2026-01-01 00:00:00.000000', 17);
INSERT INTO public.schema_version VALUES (18, '2026-01-01 00:00:00.000000', 17);
INSERT INTO public.seals VALUES (1, 'f1:gAAAAABrCCHPEFU7e_tVFCqddihoCQBk_sScErBkIh3wEjW1w_reOrUtldwuGQXOt91OHuN3dcStRpmhcJ1AcIE1FBaJ0Fa0qA==');
INSERT INTO public.uploads VALUES ('cut-short', '', 'demo', 100);
ALTER TABLE ONLY public.changes
    ADD CONSTRAINT changes_pkey PRIMARY KEY (kind, id);
ALTER TABLE ONLY public.cluster_events
    ADD CONSTRAINT cluster_events_pkey PRIMARY KEY (cluster_id, number);
ALTER TABLE ONLY public.cluster_templates
    ADD CONSTRAINT cluster_templates_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.clusters
    ADD CONSTRAINT clusters_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.daemons
    ADD CONSTRAINT daemons_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.data_sources
    ADD CONSTRAINT data_sources_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.execution_log_pieces
    ADD CONSTRAINT execution_log_pieces_pkey PRIMARY KEY (execution_id, start_offset);
ALTER TABLE ONLY public.execution_logs
    ADD CONSTRAINT execution_logs_pkey PRIMARY KEY (execution_id);
ALTER TABLE ONLY public.executions
    ADD CONSTRAINT executions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.feed_cuts
    ADD CONSTRAINT feed_cuts_pkey PRIMARY KEY (tenant_id);
ALTER TABLE ONLY public.feed_marks
    ADD CONSTRAINT feed_marks_pkey PRIMARY KEY (at);
ALTER TABLE ONLY public.feed
    ADD CONSTRAINT feed_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.internals
    ADD CONSTRAINT internals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.job_binaries
    ADD CONSTRAINT job_binaries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.job_credentials
    ADD CONSTRAINT job_credentials_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.kept_answers
    ADD CONSTRAINT kept_answers_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY public.loose_trusts
    ADD CONSTRAINT loose_trusts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.node_group_templates
    ADD CONSTRAINT node_group_templates_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.pieces
    ADD CONSTRAINT pieces_pkey PRIMARY KEY (upload_id, number);
ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.seals
    ADD CONSTRAINT seals_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
CREATE INDEX changes_expiring ON public.changes USING btree (number) WHERE (expires = 1);
CREATE INDEX changes_expiring_tenant ON public.changes USING btree (tenant_id, number) WHERE (expires = 1);
CREATE INDEX changes_feed ON public.changes USING btree (tenant_id, number);
CREATE UNIQUE INDEX cluster_templates_name ON public.cluster_templates USING btree (tenant_id, name);
CREATE INDEX cluster_templates_page ON public.cluster_templates USING btree (tenant_id, created_at, id);
CREATE INDEX clusters_accepted ON public.clusters USING btree (accepted_at) WHERE (generation > settled_generation);
CREATE INDEX clusters_instances ON public.clusters USING btree (tenant_id, instances, id);
CREATE UNIQUE INDEX clusters_name ON public.clusters USING btree (tenant_id, name);
CREATE UNIQUE INDEX clusters_name_key ON public.clusters USING btree (tenant_id, name_key);
CREATE INDEX clusters_page ON public.clusters USING btree (tenant_id, created_at, id);
CREATE INDEX clusters_status ON public.clusters USING btree (status);
CREATE INDEX clusters_transient ON public.clusters USING btree (id) WHERE (is_transient = 1);
CREATE INDEX clusters_unsettled ON public.clusters USING btree (created_at, id) WHERE (generation > settled_generation);
CREATE UNIQUE INDEX data_sources_name ON public.data_sources USING btree (tenant_id, name);
CREATE INDEX data_sources_page ON public.data_sources USING btree (tenant_id, created_at, id);
CREATE INDEX execution_logs_oldest ON public.execution_logs USING btree (tenant_id, saved_at, execution_id, size) WHERE (size > 0);
CREATE INDEX executions_cluster ON public.executions USING btree (cluster_id);
CREATE INDEX executions_ended ON public.executions USING btree (created_at, id) WHERE ((ended = 1) AND (hidden = 0));
CREATE INDEX executions_hidden ON public.executions USING btree (created_at, id) WHERE (hidden = 1);
CREATE INDEX executions_input ON public.executions USING btree (input_id);
CREATE INDEX executions_job ON public.executions USING btree (job_id);
CREATE INDEX executions_open ON public.executions USING btree (tenant_id) WHERE (ended = 0);
CREATE INDEX executions_output ON public.executions USING btree (output_id);
CREATE INDEX executions_page ON public.executions USING btree (tenant_id, created_at, id);
CREATE INDEX executions_status ON public.executions USING btree (status, created_at) WHERE (ended = 0);
CREATE INDEX executions_unfinished ON public.executions USING btree (created_at, id) WHERE (ended = 0);
CREATE UNIQUE INDEX internals_name ON public.internals USING btree (tenant_id, name);
CREATE INDEX internals_page ON public.internals USING btree (tenant_id, created_at, id);
CREATE INDEX internals_size ON public.internals USING btree (tenant_id, size);
CREATE UNIQUE INDEX internals_upload ON public.internals USING btree (upload_id);
CREATE UNIQUE INDEX job_binaries_name ON public.job_binaries USING btree (tenant_id, name);
CREATE INDEX job_binaries_page ON public.job_binaries USING btree (tenant_id, created_at, id);
CREATE INDEX job_binaries_url ON public.job_binaries USING btree (tenant_id, url);
CREATE INDEX job_credentials_execution ON public.job_credentials USING btree (execution_id);
CREATE INDEX job_credentials_tenant ON public.job_credentials USING btree (tenant_id);
CREATE UNIQUE INDEX jobs_name ON public.jobs USING btree (tenant_id, name);
CREATE INDEX jobs_page ON public.jobs USING btree (tenant_id, created_at, id);
CREATE INDEX kept_answers_age ON public.kept_answers USING btree (created_at);
CREATE INDEX kept_answers_tenant ON public.kept_answers USING btree (tenant_id, created_at);
CREATE INDEX leases_holder ON public.leases USING btree (holder);
CREATE UNIQUE INDEX node_group_templates_name ON public.node_group_templates USING btree (tenant_id, name);
CREATE INDEX node_group_templates_page ON public.node_group_templates USING btree (tenant_id, created_at, id);
CREATE INDEX uploads_size ON public.uploads USING btree (tenant_id, size);
ALTER TABLE ONLY public.cluster_events
    ADD CONSTRAINT cluster_events_cluster_id_fkey FOREIGN KEY (cluster_id) REFERENCES public.clusters(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.execution_log_pieces
    ADD CONSTRAINT execution_log_pieces_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES public.execution_logs(execution_id) ON DELETE CASCADE;
ALTER TABLE ONLY public.execution_logs
    ADD CONSTRAINT execution_logs_execution_id_fkey FOREIGN KEY (execution_id) REFERENCES public.executions(id) ON DELETE CASCADE;

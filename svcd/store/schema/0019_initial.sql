-- Ids and timestamps are text that sorts by its bytes; JSON is text that only Python reads.
-- record: the whole record as JSON. wire: the JSON object of the interface, written with it.
create table node_group_templates (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  plugin_name text {c} not null,
  engine_version text {c} not null,
  flavor_id text {c} not null,
  created_at text {c} not null,
  record text not null,
  wire text not null
);
create unique index node_group_templates_name on node_group_templates (tenant_id, name);
create index node_group_templates_page on node_group_templates (tenant_id, created_at, id);

-- refs: ids of other records that this one mentions, separated by blanks.
create table cluster_templates (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  plugin_name text {c} not null,
  engine_version text {c} not null,
  created_at text {c} not null,
  refs text {c} not null,
  record text not null,
  wire text not null
);
create unique index cluster_templates_name on cluster_templates (tenant_id, name);
create index cluster_templates_page on cluster_templates (tenant_id, created_at, id);

-- name_key: the name in lower case, which one cluster of a tenant has. instances: of all node
-- groups; each create and each scale request adds up those of its tenant. accepted_at: when the
-- newest request was accepted. used: some execution was accepted for the transient cluster, also
-- when its row is gone by now. ends: svcd deletes it after a time without use, or at an age. usage:
-- seconds of machines by flavor, see svcd/model/usage.py.
create table clusters (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  name_key text {c} not null,
  plugin_name text {c} not null,
  engine_version text {c} not null,
  cluster_template_id text {c},
  default_image_id text {c} not null,
  status text {c} not null,
  is_transient integer not null,
  generation integer not null,
  settled_generation integer not null,
  version integer not null,
  instances integer not null,
  accepted_at text {c} not null,
  used integer not null default 0,
  ends integer not null,
  usage text not null default '[]',
  created_at text {c} not null,
  refs text {c} not null,
  record text not null,
  wire text not null
);
create unique index clusters_name_key on clusters (tenant_id, name_key);
create index clusters_name on clusters (tenant_id, name);
create index clusters_page on clusters (tenant_id, created_at, id);
create index clusters_unsettled on clusters (created_at, id) where generation > settled_generation;
create index clusters_transient on clusters (id) where is_transient = 1;
create index clusters_ends on clusters (id) where ends = 1;
create index clusters_instances on clusters (tenant_id, instances, id);
-- The metrics count clusters by status, and ask for the oldest unsettled one.
create index clusters_status on clusters (status);
create index clusters_accepted on clusters (accepted_at) where generation > settled_generation;

-- The machines of all clusters of a tenant. seconds: until at_s (epoch seconds), also of deleted
-- clusters. machines: their number since then.
create table usage (
  tenant_id text {c} primary key,
  at_s double precision not null,
  seconds double precision not null,
  machines {bigint} not null
);

create table cluster_events (
  cluster_id text {c} not null references clusters (id) on delete cascade,
  number integer not null,
  record text not null,
  primary key (cluster_id, number)
);

-- sealed: credentials, sealed with the key of the state folder.
create table data_sources (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  type text {c} not null,
  url text {c} not null,
  created_at text {c} not null,
  record text not null,
  sealed text
);
create unique index data_sources_name on data_sources (tenant_id, name);
create index data_sources_page on data_sources (tenant_id, created_at, id);

-- size: bytes of the binary.
create table internals (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  upload_id text {c} not null,
  size {bigint} not null,
  created_at text {c} not null,
  record text not null
);
create unique index internals_name on internals (tenant_id, name);
create index internals_page on internals (tenant_id, created_at, id);
create unique index internals_upload on internals (upload_id);
create index internals_size on internals (tenant_id, size);

-- Uploads in progress, whose pieces no record owns yet. holder: the daemon that receives the upload.
-- tenant_id, size: the bytes that the upload reserves until its binary is stored.
create table uploads (
  id text {c} primary key,
  holder text {c} not null,
  tenant_id text {c} not null,
  size {bigint} not null
);
create index uploads_size on uploads (tenant_id, size);

create table pieces (
  upload_id text {c} not null,
  number integer not null,
  content {blob} not null,
  primary key (upload_id, number)
);

create table job_binaries (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  url text {c} not null,
  created_at text {c} not null,
  record text not null,
  sealed text
);
create unique index job_binaries_name on job_binaries (tenant_id, name);
create index job_binaries_page on job_binaries (tenant_id, created_at, id);
create index job_binaries_url on job_binaries (tenant_id, url);

create table jobs (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  type text {c} not null,
  created_at text {c} not null,
  refs text {c} not null,
  record text not null
);
create unique index jobs_name on jobs (tenant_id, name);
create index jobs_page on jobs (tenant_id, created_at, id);

-- hidden: its deletion was accepted and is being carried out.
create table executions (
  id text {c} primary key,
  tenant_id text {c} not null,
  job_id text {c} not null,
  cluster_id text {c},
  input_id text {c},
  output_id text {c},
  status text {c} not null,
  ended integer not null,
  hidden integer not null,
  version integer not null,
  created_at text {c} not null,
  record text not null,
  wire text not null
);
create index executions_page on executions (tenant_id, created_at, id);
create index executions_job on executions (job_id);
create index executions_cluster on executions (cluster_id, created_at, ended);
create index executions_input on executions (input_id);
create index executions_output on executions (output_id);
-- Every status tick asks for the versions of all unfinished executions. In SQLite this index has all
-- that it reads, and the large rows are left alone. PostgreSQL keeps large texts beside its rows, and
-- an index with the version would have to follow each write.
create index executions_unfinished on executions (created_at, id
{sqlite}, version, ended
) where ended = 0;
-- What each status tick looks for: ended executions whose folder or deletion is left to do.
create index executions_untidy on executions (created_at, id) where ended = 2;
-- What each execute request counts: the open executions of its tenant.
create index executions_open on executions (tenant_id) where ended = 0;
-- What pruning reads: ended executions, oldest first.
create index executions_ended on executions (created_at, id) where ended > 0 and hidden = 0;
-- The metrics count open executions by status.
create index executions_status on executions (status, created_at) where ended = 0;

-- The kept logs of job executions.
-- start_offset: of the first byte that is kept; end_offset: of the byte after the last one. size: of
-- its pieces, compressed. state: JSON, what svcd has seen of the files.
create table execution_logs (
  execution_id text {c} primary key references executions (id) on delete cascade,
  tenant_id text {c} not null,
  version integer not null,
  start_offset {bigint} not null,
  end_offset {bigint} not null,
  complete integer not null,
  size integer not null,
  saved_at text {c} not null,
  state text not null
);
create index execution_logs_oldest on execution_logs (tenant_id, saved_at, execution_id, size)
 where size > 0;

-- content: compressed with zlib.
create table execution_log_pieces (
  execution_id text {c} not null references execution_logs (execution_id) on delete cascade,
  start_offset {bigint} not null,
  end_offset {bigint} not null,
  size integer not null,
  content {blob} not null,
  primary key (execution_id, start_offset)
);

-- Application credentials of jobs, from before they are created until after they are deleted.
-- name: at the identity service. sealed: the account, and the id and
-- the secret of the application credential, sealed with the key of the state folder.
create table job_credentials (
  name text {c} primary key,
  execution_id text {c} not null,
  cluster_id text {c} not null,
  tenant_id text {c} not null,
  sealed text not null,
  asked_at text {c} not null,
  expires_at text {c} not null,
  due_at text {c} not null,
  tries integer not null,
  trouble text not null
);
create index job_credentials_execution on job_credentials (execution_id);
create index job_credentials_tenant on job_credentials (tenant_id);

-- Trusts that no cluster's row names: asked for and perhaps made, or to be given back.
-- mark: the end that was asked for. doomed: no row may name it any more.
create table loose_trusts (
  id text {c} primary key,
  cluster_id text {c} not null,
  tenant_id text {c} not null,
  trustor_id text {c} not null,
  mark text {c} not null,
  trust_id text {c} not null,
  doomed integer not null,
  asked_at text {c} not null,
  due_at text {c} not null,
  tries integer not null,
  trouble text not null
);

-- Answers to requests with an Idempotency-Key, which are kept for 24 hours.
-- id: HMAC of project, user, route and key. request: HMAC of the values in the path, the query and
-- the body. sealed: the answer's JSON, sealed with the key of the state folder.
create table kept_answers (
  id text {c} primary key,
  tenant_id text {c} not null,
  created_at text {c} not null,
  request text {c} not null,
  sealed text not null
);
create index kept_answers_tenant on kept_answers (tenant_id, created_at);
create index kept_answers_age on kept_answers (created_at);

-- Several daemons on one PostgreSQL: see svcd/store/lease/keeper.py. SQLite has one, and does not
-- look. until_s, free_s: seconds since 1970 by the clock of the database's server. knows: the newest
-- schema that the daemon's release knows.
create table daemons (
  id text {c} primary key,
  about text not null,
  until_s double precision not null,
  knows integer not null
);

-- One row, which changes only with the holder: transactions of the work lock it. holder: the daemon
-- that does the work, "" when the lease is free. epoch: grows with each change.
create table lease (
  holder text {c} not null,
  epoch {bigint} not null,
  free_s double precision not null
);
insert into lease (holder, epoch, free_s) values ('', 0, 0);

-- One text that the daemons' common key has sealed.
create table seals (
  id integer primary key,
  sealed text not null
);

-- The change feed: the newest change of each record, and each event of a cluster.
-- kind: name of the record's list. number: of the change, see svcd/store/changes.py. first: number of
-- the record's creation, 0 when the feed began later, as after a restore. expires: 1 when the row is
-- deleted a day later.
create table changes (
  kind text {c} not null,
  id text {c} not null,
  tenant_id text {c} not null,
  number {bigint} not null,
  first {bigint} not null,
  version integer not null,
  deleted integer not null,
  expires integer not null,
  primary key (kind, id)
);
create index changes_feed on changes (tenant_id, number);
create index changes_expiring on changes (number) where expires = 1;
create index changes_expiring_tenant on changes (tenant_id, number) where expires = 1;

-- One row. epoch: differs after a restore or a copy. number: the newest number; PostgreSQL counts
-- transactions instead.
create table feed (
  id integer primary key,
  epoch text {c} not null,
  number {bigint} not null
);

-- Every change that was committed before `at` has a lower number.
create table feed_marks (
  at text {c} primary key,
  number {bigint} not null
);

-- What the change feed has lost of a tenant with too many deletions and events: those up to `number`.
create table feed_cuts (
  tenant_id text {c} primary key,
  number {bigint} not null
);

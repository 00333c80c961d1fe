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

create table clusters (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  plugin_name text {c} not null,
  engine_version text {c} not null,
  cluster_template_id text {c},
  default_image_id text {c} not null,
  status text {c} not null,
  is_transient integer not null,
  generation integer not null,
  settled_generation integer not null,
  version integer not null,
  created_at text {c} not null,
  refs text {c} not null,
  record text not null,
  wire text not null
);
create unique index clusters_name on clusters (tenant_id, name);
create index clusters_page on clusters (tenant_id, created_at, id);
create index clusters_unsettled on clusters (created_at, id) where generation > settled_generation;
create index clusters_transient on clusters (id) where is_transient = 1;

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

create table internals (
  id text {c} primary key,
  tenant_id text {c} not null,
  name text {c} not null,
  upload_id text {c} not null,
  created_at text {c} not null,
  record text not null
);
create unique index internals_name on internals (tenant_id, name);
create index internals_page on internals (tenant_id, created_at, id);
create unique index internals_upload on internals (upload_id);

-- uploads: those under way, whose pieces no record owns yet.
create table uploads (
  id text {c} primary key
);

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
create index executions_cluster on executions (cluster_id);
create index executions_input on executions (input_id);
create index executions_output on executions (output_id);
create index executions_unfinished on executions (created_at, id) where ended = 0;

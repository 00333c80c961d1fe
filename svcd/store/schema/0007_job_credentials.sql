-- Application credentials of jobs, from before they are created until after they are deleted.
-- name: at the identity service. cluster_id: decides the lease. sealed: the account, and the id and
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

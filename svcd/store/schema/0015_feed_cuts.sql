-- What the change feed has lost of a tenant with too many deletions and events: those up to `number`.
create table feed_cuts (
  tenant_id text {c} primary key,
  number {bigint} not null
);
create index changes_expiring_tenant on changes (tenant_id, number) where expires = 1;

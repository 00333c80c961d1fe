-- The change feed: the newest change of each record, and each event of a cluster.
-- kind: name of the record's list. number: of the change, see svcd/store/changes.py. first: number of
-- the record's creation, 0 when it was made before this table. expires: 1 when the row is deleted a
-- day later.
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

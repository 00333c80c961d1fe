-- Several daemons on one PostgreSQL: see svcd/store/leases.py. SQLite has one, and does not look.
-- until_s, free_s: seconds since 1970 by the clock of the database's server.
create table daemons (
  id text {c} primary key,
  about text not null,
  until_s double precision not null
);

-- holder: "" when it is free. epoch: grows with each change of the holder.
create table leases (
  shard integer primary key,
  holder text {c} not null,
  epoch {bigint} not null,
  free_s double precision not null
);
insert into leases (shard, holder, epoch, free_s)
with recursive numbers (n) as (select 0 union all select n + 1 from numbers where n < 63)
select n, '', 0, 0 from numbers;
create index leases_holder on leases (holder);

-- holder: the daemon that receives the upload.
alter table uploads add column holder text {c} not null default '';

-- One text that the daemons' common key has sealed.
create table seals (
  id integer primary key,
  sealed text not null
);

-- Which releases can use the database.
-- serves: a release can use a database when it knows the schema of this number, or a later one.
alter table schema_version add column serves integer not null default 0;
update schema_version set serves = number;
-- knows: the newest schema that the daemon's release knows; 0: a release before this column.
alter table daemons add column knows integer not null default 0;

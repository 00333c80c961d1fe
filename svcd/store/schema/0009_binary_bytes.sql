-- size: bytes of the binary.
alter table internals add column size {bigint} not null default 0;
update internals set size = (
  select coalesce(sum(length(p.content)), 0) from pieces p where p.upload_id = internals.upload_id
);
create index internals_size on internals (tenant_id, size);

-- tenant_id, size: the bytes that the upload reserves until its binary is stored.
alter table uploads add column tenant_id text {c} not null default '';
alter table uploads add column size {bigint} not null default 0;
create index uploads_size on uploads (tenant_id, size);

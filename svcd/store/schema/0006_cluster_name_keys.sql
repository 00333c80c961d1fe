-- name_key: the name in lower case, which one cluster of a tenant has. Null: an older cluster has it
-- already, for an earlier release took names that differ in case alone.
alter table clusters add column name_key text {c};
update clusters set name_key = lower(name)
 where id in (
   select ranked.id from (
     select id, row_number() over (
       partition by tenant_id, lower(name) order by created_at, id
     ) as place from clusters
   ) ranked where ranked.place = 1
 );
create unique index clusters_name_key on clusters (tenant_id, name_key);

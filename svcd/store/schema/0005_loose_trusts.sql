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

\set id random(1, :rows)
select pg_advisory_xact_lock(:id);

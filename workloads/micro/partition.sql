\set at random(0, 49999)
select value from measure where at = :at;

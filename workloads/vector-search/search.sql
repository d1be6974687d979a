\set q random(1, :queries)
select id from item order by embedding <-> (select embedding from query where id = :q) limit 10;

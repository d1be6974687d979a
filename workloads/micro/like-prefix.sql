\set id random(1, :rows / 5)
select count(*) from phrase where words like left(md5(:id::text), 6) || '%';

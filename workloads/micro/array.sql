\set tag random(0, 999)
select count(*) from document where tags @> array[:tag]::int[];

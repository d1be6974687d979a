create table scanned (i int, t text);
insert into scanned
    select i, 'abcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxy'
    from generate_series(1, :rows) i;
-- Scans are not to write what the first reader of a row finds out.
vacuum (freeze, analyze) scanned;

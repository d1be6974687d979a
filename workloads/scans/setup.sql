create table scanned (i int, t text);
insert into scanned
    select i, 'abcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxyabcdefghijklmnopqrstuvwxy'
    from generate_series(1, :rows) i;
-- Set hint bits now, so that the scans do not write them.
vacuum (freeze, analyze) scanned;

-- A row takes more than half of the tenth of a block that may be filled, so that each has a block of its own, and
-- room there for its next versions. Blocks are in no order of the keys: what is next by key is somewhere else.
do $setup$
declare
    rows bigint := :size / 8192;
begin
    if :tables not between 1 and 20 then
        raise exception 'the parameter tables is :tables, and may be 1 to 20: of no more are blocks counted';
    end if;
    if rows < greatest(:work_unit, :update_unit) then
        raise exception 'a table of % blocks is smaller than a work unit: raise the parameter size', rows;
    end if;
    for t in 1..:tables loop
        execute format('create table block_%s (key bigint not null, counter bigint not null, padding text not null)
                        with (fillfactor = 10)', t);
        execute format('insert into block_%s select key, 0, repeat(''x'', 500) from generate_series(1, %s) key
                        order by md5(key || ''/%s'')', t, rows, t);
        execute format('alter table block_%s add primary key (key)', t);
    end loop;
end
$setup$;

-- One branch a table, so that plans are made once. By the index, in the order of keys: who updates locks blocks in
-- this order, and nobody waits in a circle. From 15 on a session reports what it did at the end of each call.
do $setup$
declare
    report text := case when current_setting('server_version_num')::int >= 150000
                        then 'perform pg_stat_force_next_flush();' else '' end;
    plans text := 'set enable_seqscan = off set enable_bitmapscan = off set max_parallel_workers_per_gather = 0';
    reads text := '';
    updates text := '';
begin
    for t in 1..:tables loop
        reads := reads || format('when %s then select sum(counter) into result from block_%s
                                  where key between first and first + unit - 1;', t, t);
        updates := updates || format('when %s then update block_%s set counter = counter + 1
                                      where key between first and first + unit - 1;
                                      get diagnostics result = row_count;', t, t);
    end loop;
    execute format('create function read_blocks(t int, first bigint, unit bigint) returns bigint language plpgsql %s
                    as $f$ declare result bigint; begin case t %s end case; %s return result; end $f$',
                   plans, reads, report);
    execute format('create function update_blocks(t int, first bigint, unit bigint) returns bigint language plpgsql %s
                    as $f$ declare result bigint; begin case t %s end case; %s return result; end $f$',
                   plans, updates, report);
end
$setup$;

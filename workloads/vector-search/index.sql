do $$ begin
    if :lists > 0 then
        create index item_embedding on item using ivfflat (embedding vector_l2_ops) with (lists = :lists);
    else
        create index item_embedding on item using hnsw (embedding vector_l2_ops) with (m = :m, ef_construction = :ef_construction);
    end if;
end $$;
vacuum analyze item;
vacuum analyze query;

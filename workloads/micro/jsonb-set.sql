\set id random(1, :rows / 5)
update document set body = jsonb_set(body, '{count}', to_jsonb(mod(:id, 1000))) where id = :id;

-- pgbench's select-only, for sysbench: one account by its key, by a prepared statement.

sysbench.cmdline.options = {
   scale = {"pgbench's scale factor", 1}
}

function thread_init()
   connection = sysbench.sql.driver():connect()
   statement = connection:prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?")
   aid = statement:bind_create(sysbench.sql.type.INT)
   statement:bind_param(aid)
end

function event()
   aid:set(sysbench.rand.uniform(1, 100000 * sysbench.opt.scale))
   statement:execute()
end

function thread_done()
   statement:close()
   connection:disconnect()
end

-- sysbench: the statement of pgbench's select-only script, prepared once for each connection.

sysbench.cmdline.options = {
	accounts = { "Number of rows of pgbench_accounts", 100000 },
}

local connection, statement, aid

function thread_init()
	connection = sysbench.sql.driver():connect()
	statement = connection:prepare("SELECT abalance FROM pgbench_accounts WHERE aid = ?")
	aid = statement:bind_create(sysbench.sql.type.INT)
	statement:bind_param(aid)
end

function event()
	aid:set(sysbench.rand.uniform(1, sysbench.opt.accounts))
	statement:execute()
end

function thread_done()
	statement:close()
	connection:disconnect()
end

select count(*) from scanned;

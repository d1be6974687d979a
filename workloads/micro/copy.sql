begin;
copy landing from 'micro-copy';
rollback;

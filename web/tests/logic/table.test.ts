import { expect, test } from 'vitest';
import { csv } from '../../src/data/table';

test('a table as CSV has all values in full, and empty fields for missing ones', () => {
  const columns = [{ name: 'cell', text: true }, { name: 'p99 (µs)', show: () => 'rounded' }];
  expect(csv({ columns, rows: [['a "b", c', 1.23456789], ['d', null]] })).toBe(
    'cell,p99 (µs)\r\n"a ""b"", c",1.23456789\r\nd,\r\n',
  );
});

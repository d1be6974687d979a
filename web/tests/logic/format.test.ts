import { describe, expect, test } from 'vitest';
import * as format from '../../src/data/format';

describe('figures', () => {
  test('throughput has at least three digits and no needless ones', () => {
    const shown = [0, 0.0612, 0.1234, 1.234, 9.999, 47.06, 99.96, 999.6, 12_345.6, 1_234_567].map(format.tps);
    expect(shown).toEqual(['0.00', '0.0612', '0.123', '1.23', '10.0', '47.1', '100', '1,000', '12,346', '1,234,567']);
  });

  test('ticks of an axis differ however small its figures are', () => {
    expect([0, 0.0001, 0.0002, 0.0003].map(format.tick)).toEqual(['0', '0.0001', '0.0002', '0.0003']);
    expect([0, 0.1 + 0.2, 1.5, 40_000, 1_250_000].map(format.tick)).toEqual(['0', '0.3', '1.5', '40,000', '1,250,000']);
  });

  test('missing values are never zero', () => {
    for (const show of [format.tps, format.change, format.count, format.latency]) expect(show(null)).toBe('–');
  });

  test('a change has its sign unless there is none', () => {
    const shown = [0.042, -0.5, 0, -0.0001, 1.5].map(format.change);
    expect(shown).toEqual(['+4.2%', '−50.0%', '0.0%', '0.0%', '+150%']);
  });

  test('lengths are in seconds, with two digits at least', () => {
    const shown = [0, 12_345, 994_999, 1_000_000, 85_649_000, 2_260_648_018].map(format.seconds);
    expect(shown).toEqual(['0.000 s', '0.012 s', '0.995 s', '1.00 s', '85.6 s', '2,260.6 s']);
  });

  test('latency is in the unit that keeps it short', () => {
    const shown = [1.5, 870, 999.6, 1337, 2_100_000].map(format.latency);
    expect(shown).toEqual(['1.50 µs', '870 µs', '1.00 ms', '1.34 ms', '2.10 s']);
  });

  test('spans are in their two largest units', () => {
    const shown = [500_000, 5e6, 59.96e6, 252e6, 3600e6, 3660e6, 90_000e6].map(format.span);
    expect(shown).toEqual(['500 ms', '5 s', '60 s', '4 min 12 s', '1 h', '1 h 1 min', '25 h']);
  });

  test('times are in UTC', () => {
    expect(format.minute('2026-11-21T09:30:12.481Z')).toBe('2026-11-21 09:30 UTC');
    expect(format.second('2026-11-21T09:30:12.481Z')).toBe('09:30:12 UTC');
  });

  test('bytes are in binary units', () => {
    expect([0, 1023, 25_165_824].map(format.bytes)).toEqual(['0 B', '1,023 B', '24.0 MiB']);
  });
});

describe('settings are in the unit that a person would have written', () => {
  test.each([
    ['16384', '8kB', '128 MB'],
    ['1024', 'MB', '1 GB'],
    ['4096', 'kB', '4 MB'],
    ['300', 's', '5 min'],
    ['200', 'ms', '200 ms'],
    ['-1', '8kB', '-1 8kB'],
    ['0', 'kB', '0 kB'],
    ['on', null, 'on'],
    ['0.9', null, '0.9'],
  ])('%s of %s', (value, unit, shown) => {
    expect(format.setting(value, unit)).toBe(shown);
  });
});

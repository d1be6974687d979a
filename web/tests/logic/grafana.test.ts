/**
 * The dashboard in grafana/ is what Grafana's own types say. It is checked as a literal: imported JSON would have lost its
 * words to the type string.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { diagnosticsOf } from './types';

interface Panel {
  type: string;
  fieldConfig: { defaults: { custom: unknown } };
  options: unknown;
}

const text = readFileSync(join(import.meta.dirname, '../../../grafana/pgdyno.json'), 'utf8');
const { panels } = JSON.parse(text) as { panels: Panel[] };

const ofType = (type: string): Panel[] => panels.filter((panel) => panel.type === type);
const options = (type: string): string => JSON.stringify(ofType(type).map((panel) => panel.options));
const custom = (type: string): string =>
  JSON.stringify(ofType(type).map((panel) => panel.fieldConfig.defaults.custom));

/** Diagnostics of a program that assigns a document and the parts of its panels, which have types of their own. */
function diagnostics(dashboard: string): string[] {
  const program = `
    import type {
      AnnotationQuery, Dashboard, DataQuery, GraphFieldConfig, OptionsWithLegend, OptionsWithTooltip, TableFieldOptions,
      TableOptions,
    } from '@grafana/schema';

    // JSON has the words of enumerations.
    type Plain<T> = T extends string ? \`\${T}\` : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
    interface SqlQuery extends DataQuery {
      format: 'table' | 'time_series';
      rawQuery: true;
      editorMode: 'code';
      rawSql: string;
    }
    type Document = Omit<Dashboard, 'annotations'> & { annotations: { list: AnnotationQuery<SqlQuery>[] } };

    export const dashboard: Plain<Document> = ${dashboard};
    export const series: Plain<GraphFieldConfig>[] = ${custom('timeseries')};
    export const seriesOptions: Plain<OptionsWithLegend & OptionsWithTooltip>[] = ${options('timeseries')};
    export const tables: Plain<TableFieldOptions>[] = ${custom('table')};
    export const tableOptions: Plain<TableOptions>[] = ${options('table')};
  `;
  return diagnosticsOf(program);
}

test('the dashboard has the types of Grafana', { timeout: 60_000 }, () => {
  expect(panels.every((panel) => ['row', 'table', 'timeseries'].includes(panel.type))).toBe(true);
  expect(diagnostics(text)).toEqual([]);
});

test('an unknown key or word of the dashboard is seen', { timeout: 60_000 }, () => {
  expect(diagnostics(text.replace('"schemaVersion"', '"schema"')).join()).toContain('"schema"');
  expect(diagnostics(text.replace('"type": "query"', '"type": "queries"')).join()).toContain('"queries"');
});

/** The Kubernetes manifests in the documentation are what Kubernetes' own schemas say. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { diagnosticsOf } from './types';

const text = readFileSync(join(import.meta.dirname, '../../../docs/fleet.md'), 'utf8');

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
}

function manifests(): Manifest[] {
  const blocks = [...text.matchAll(/^```yaml\n(apiVersion:[^]*?)^```/gm)].map(([, block]) => block ?? '');
  return blocks.flatMap((block) => parseAllDocuments(block)).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Manifest;
  });
}

/** Checks a manifest by the schema of its kind, which knows values, and by its type, which knows all keys. */
async function validate(manifest: Manifest): Promise<void> {
  const { apiVersion, kind } = manifest;
  const path = `kubernetes-models/${apiVersion}/${kind}`;
  const module = (await import(path)) as Record<string, new (data: unknown) => { validate(): void }>;
  const Kind = module[kind];
  if (!Kind) throw new Error(`no kind ${kind}`);
  new Kind(manifest).validate();
  const literal = `import type { I${kind} } from '${path}'; export const manifest: I${kind} = ${JSON.stringify(manifest)};`;
  const unknown = diagnosticsOf(literal);
  if (unknown.length > 0) throw new Error(unknown.join('\n'));
}

test('manifests are valid', { timeout: 60_000 }, async () => {
  const all = manifests();
  expect(all.map(({ kind }) => kind)).toEqual(['DaemonSet']);
  for (const manifest of all) await validate(manifest);
});

test.each([
  ['a text for a number', 'terminationGracePeriodSeconds: 900', 'terminationGracePeriodSeconds: soon', /terminationGracePeriodSeconds/],
  ['no selector', 'selector:\n    matchLabels', 'chooser:\n    matchLabels', /selector/],
  ['a misspelt key', 'volumeMounts:', 'volumeMount:', /volumeMount/],
  ['a kind that does not exist', 'kind: DaemonSet', 'kind: DeamonSet', /DeamonSet/],
])('%s is found', { timeout: 60_000 }, async (_, from, to, why) => {
  const block = /^```yaml\n(apiVersion:[^]*?)^```/m.exec(text)?.[1] ?? '';
  expect(block).toContain(from);
  const manifest = parseAllDocuments(block.replace(from, to))[0]?.toJS() as Manifest;
  await expect(validate(manifest)).rejects.toThrow(why);
});

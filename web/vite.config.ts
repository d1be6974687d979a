import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

/** Allows the one script that was built into the page, and no other. Runs after the script is inlined. */
function allowOwnScript(): Plugin {
  return {
    name: 'pgdyno:allow-own-script',
    enforce: 'post',
    generateBundle: {
      order: 'post',
      handler(_, bundle) {
        const page = bundle['index.html'];
        if (page?.type !== 'asset') throw new Error('there is no index.html to allow a script in');
        const html = String(page.source);
        const script = /<script type="module"[^>]*>([\s\S]*?)<\/script>/.exec(html)?.[1];
        if (!script) throw new Error('index.html has no inlined script');
        const hash = createHash('sha256').update(script).digest('base64');
        page.source = html.replace("'sha256-OWN_SCRIPT'", `'sha256-${hash}'`);
      },
    },
  };
}

/**
 * Parts of Observable Plot that no chart here uses, a sixth of the page: maps, named colour schemes, legends, tips,
 * histograms, and axes of dates. Omitted functions do nothing when called.
 */
const OMITTED = [
  'd3-geo',
  'd3-scale-chromatic',
  'd3-time',
  'd3-time-format',
  '@observablehq/plot/src/projection.js',
  '@observablehq/plot/src/time.js',
  '@observablehq/plot/src/scales/schemes.js',
  '@observablehq/plot/src/interactions/pointer.js',
  '@observablehq/plot/src/marks/tip.js',
  '@observablehq/plot/src/legends.js',
  '@observablehq/plot/src/transforms/bin.js',
];

/**
 * Results of omitted functions that are called nevertheless: a chart puts no legends before itself, a scale without
 * values has no colours, a line whose values are not binned stays as it is.
 */
const STUBS: Record<string, string> = {
  createLegends: '[]',
  quantitativeScheme: '() => undefined',
  maybeDenseIntervalX: 'options',
  maybeDenseIntervalY: 'options',
};

function omit(): Plugin {
  return {
    name: 'pgdyno:omit',
    enforce: 'pre',
    async load(id) {
      if (!OMITTED.some((part) => id.includes(`/node_modules/${part}`))) return null;
      const names = Object.keys((await import(pathToFileURL(id).href)) as object);
      return names.map((name) => `export const ${name} = (options) => ${STUBS[name] ?? 'undefined'};`).join('\n');
    },
  };
}

export default defineConfig({
  plugins: [omit(), svelte(), viteSingleFile(), allowOwnScript()],
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    // The page is one file: the last build stays until this one has succeeded.
    emptyOutDir: false,
  },
});

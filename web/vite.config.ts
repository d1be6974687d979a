import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';
import { viteSingleFile } from 'vite-plugin-singlefile';

/** Lets the page run the one script that was built into it, and no other. Comes after the script is inlined. */
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
 * Leaves out what Observable Plot brings along and no chart here has: maps, colour schemes, legends, tips, calendars. A function
 * of these does nothing. `what` are packages, or files of Plot.
 */
function leaveOut(...what: string[]): Plugin {
  const MARK = '\0left-out:';
  const PLOT = '@observablehq/plot/src/';
  return {
    name: 'pgdyno:leave-out',
    enforce: 'pre',
    resolveId(source, importer = '') {
      const [folder, within] = importer.split(PLOT);
      const path = within !== undefined && source.startsWith('.') ? PLOT + join(dirname(within), source) : source;
      return what.includes(path) ? MARK + (path === source ? source : `${folder ?? ''}${path}`) : null;
    },
    async load(id) {
      if (!id.startsWith(MARK)) return null;
      const names = Object.keys((await import(id.slice(MARK.length))) as object).filter((name) => name !== 'default');
      return `const nothing = () => undefined;\n${names.map((name) => `export const ${name} = nothing;`).join('\n')}`;
    },
  };
}

const LEFT_OUT = [
  'd3-geo',
  'd3-scale-chromatic',
  'd3-time',
  'd3-time-format',
  '@observablehq/plot/src/interactions/pointer.js',
  '@observablehq/plot/src/legends/ramp.js',
  '@observablehq/plot/src/legends/swatches.js',
  '@observablehq/plot/src/marks/tip.js',
  '@observablehq/plot/src/projection.js',
];

export default defineConfig({
  plugins: [leaveOut(...LEFT_OUT), svelte(), viteSingleFile(), allowOwnScript()],
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    // The page is one file: what was built last stays until this build has succeeded.
    emptyOutDir: false,
  },
});

import { createHash } from 'node:crypto';
import { pathToFileURL } from 'node:url';
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

/** No chart is a map: what charts could draw maps with is left out of the page. */
function withoutMaps(): Plugin {
  return {
    name: 'pgdyno:without-maps',
    async load(id) {
      if (!id.includes('/d3-geo/dist/')) return null;
      const names = Object.keys((await import(pathToFileURL(id).href)) as object);
      return names.map((name) => `export function ${name}() {}`).join('\n');
    },
  };
}

export default defineConfig({
  plugins: [svelte(), withoutMaps(), viteSingleFile(), allowOwnScript()],
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    // The page is one file: what was built last stays until this build has succeeded.
    emptyOutDir: false,
  },
});

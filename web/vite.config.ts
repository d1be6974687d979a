import { createHash } from 'node:crypto';
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
 * Of what Observable Plot brings along, a tenth of the page: maps and colour schemes, which no chart here has. A function of them
 * does nothing.
 */
function leaveOut(...packages: string[]): Plugin {
  const MARK = '\0left-out:';
  return {
    name: 'pgdyno:leave-out',
    enforce: 'pre',
    resolveId: (source) => (packages.includes(source) ? MARK + source : null),
    async load(id) {
      if (!id.startsWith(MARK)) return null;
      const names = Object.keys((await import(id.slice(MARK.length))) as object);
      return `const nothing = () => undefined;\n${names.map((name) => `export const ${name} = nothing;`).join('\n')}`;
    },
  };
}

export default defineConfig({
  plugins: [leaveOut('d3-geo', 'd3-scale-chromatic'), svelte(), viteSingleFile(), allowOwnScript()],
  build: {
    target: ['chrome123', 'firefox121', 'safari17.5'],
    modulePreload: false,
    // The page is one file: what was built last stays until this build has succeeded.
    emptyOutDir: false,
  },
});

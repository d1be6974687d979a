/** Checks documents by the types of other programs: as literals of a TypeScript program, in which unknown keys are errors. */
import { join } from 'node:path';
import ts from 'typescript';

/** What the compiler says about a program. */
export function diagnosticsOf(program: string): string[] {
  const name = join(import.meta.dirname, 'program.ts');
  const settings: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2024,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
  };
  const files = ts.createCompilerHost(settings);
  const host: ts.CompilerHost = {
    ...files,
    fileExists: (file) => file === name || files.fileExists(file),
    getSourceFile: (file, target, ...rest) =>
      file === name ? ts.createSourceFile(file, program, target) : files.getSourceFile(file, target, ...rest),
  };
  return ts
    .getPreEmitDiagnostics(ts.createProgram([name], settings, host))
    .map((diagnostic) => ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n'));
}

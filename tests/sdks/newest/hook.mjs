// Imported before a test: `@azure/cosmos` then is the one that is installed in this directory.

import { register } from "node:module";
import { isMainThread } from "node:worker_threads";

// This file is both: what registers the hook, and the hook, which Node loads in a thread of its own.
if (isMainThread) register(import.meta.url);

export function resolve(specifier, context, next) {
  if (specifier !== "@azure/cosmos") return next(specifier, context);
  return next(specifier, { ...context, parentURL: import.meta.url });
}

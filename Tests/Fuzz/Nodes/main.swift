import FuzzSupport

// Channels and nodes. Each input needs megabytes, so they run without AddressSanitizer: see run.sh.
runTargets([
  ("payloads", fuzzPayloads),
  ("node", fuzzNode),
  ("network", fuzzNetwork),
])

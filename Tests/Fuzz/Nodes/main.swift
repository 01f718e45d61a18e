import FuzzSupport

// Channels and nodes. Each input needs megabytes, so they run without AddressSanitizer: see run.sh.
runFuzzer([
  ("payloads", fuzzPayloads),
  ("node", fuzzNode),
  ("network", fuzzNetwork),
])

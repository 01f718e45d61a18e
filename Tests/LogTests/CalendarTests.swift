import CSystem
import Testing

@Test func `dates match those of the C library`() {
  // Times around 1970, leap days, turns of centuries, and dates in the distant past and future.
  var times: [time_t] = [0, -1, 1, 951_782_400, 951_868_799, 951_868_800, 4_107_542_400, -2_203_891_200]
  for step in 0..<20_000 { times.append(time_t(step) * 31_556_952 - 300_000_000_000 + time_t(step) * 7919) }
  for time in times {
    var time = time
    var ours = tm(), theirs = tm()
    _ = csystem_gmtime_r(&time, &ours)
    _ = gmtime_r(&time, &theirs)
    #expect(csystem_timegm(&theirs) == time)
    #expect(fields(ours) == fields(theirs), "\(time)")
  }
}

private func fields(_ parts: tm) -> [Int] {
  [
    Int(parts.tm_year), Int(parts.tm_mon), Int(parts.tm_mday), Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec),
    Int(parts.tm_wday), Int(parts.tm_yday), Int(parts.tm_isdst), parts.tm_gmtoff,
  ]
}

@Test func `a year that does not fit an int is refused`() {
  var time = time_t.max
  var parts = tm()
  #expect(csystem_gmtime_r(&time, &parts) == nil && csystem_errno() == EOVERFLOW)
}

import Primitives
import Status
import Testing
import Text

@Test func `applications are reported with their sessions, but without their messages`() throws {
  let applications = [
    ApplicationStatus(
      name: "group\u{1B}chat", user: 1000, process: 42, services: ["chat", "files"],
      sessions: [
        SessionStatus(
          id: bobID.text, type: "chat",
          members: [(bobID, "bob", "connected"), (aliceID, "", "away"), (bobID, "bob", "paused")], streams: 2,
          bytesWaiting: 5000)
      ])
  ]
  let report = try SessionsReport(applications.toJSON())
  defer { report.release() }
  #expect(
    String(decoding: report.text().bytes, as: UTF8.self) == """
      APPLICATION  USER  PROCESS  SESSIONS  SERVICES
      group?chat   1000  42       1         chat, files

      SESSION   TYPE  APPLICATION  MEMBERS  AWAY  PAUSED  STREAMS  WAITING
      b0b00000  chat  group?chat   2        1     1       2        5.0 kB

      """)
}

@Test func `a report with the longest names fits eighty columns`() throws {
  let name = String(repeating: "ä", count: 31)
  let application = ApplicationStatus(
    name: name, user: 4_294_967_294, process: 4_194_304, services: Array(repeating: "a-service-type1", count: 8),
    sessions: [
      SessionStatus(
        id: bobID.text, type: "a-service-type1", members: Array(repeating: (bobID, "b", "connected"), count: 63),
        streams: 32, bytesWaiting: 999_900)
    ])
  let report = try SessionsReport([application].toJSON())
  defer { report.release() }
  for line in String(decoding: report.text().bytes, as: UTF8.self).split(separator: "\n") {
    #expect(line.unicodeScalars.count <= 80, "\(line)")
  }
}

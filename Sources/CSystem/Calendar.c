#include "CSystem.h"

// The two functions use the method of H. Hinnant's days_from_civil and civil_from_days. In this method a year begins in
// March, so a leap day is the last day of its year. 400 years have 146,097 days. 1970-01-01 is day 719,468 after
// 0000-03-01.
time_t csystem_timegm(const struct tm *parts) {
  int64_t month = parts->tm_mon + (parts->tm_mon < 2 ? 10 : -2);
  int64_t year = (int64_t)parts->tm_year + 1900 - (parts->tm_mon < 2);
  int64_t era = (year >= 0 ? year : year - 399) / 400, year_of_era = year - era * 400;
  int64_t day_of_year = (153 * month + 2) / 5 + parts->tm_mday - 1;
  int64_t day = era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
  return ((day * 24 + parts->tm_hour) * 60 + parts->tm_min) * 60 + parts->tm_sec;
}

struct tm *csystem_gmtime_r(const time_t *time, struct tm *parts) {
  int64_t day = *time / 86400, second = *time % 86400;
  if (second < 0) {
    second += 86400;
    day -= 1;
  }
  int64_t weekday = (day % 7 + 11) % 7, since = day + 719468;
  int64_t era = (since >= 0 ? since : since - 146096) / 146097;
  int64_t day_of_era = since - era * 146097;
  int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  int64_t month = (5 * day_of_year + 2) / 153;
  int64_t year = era * 400 + year_of_era + (month >= 10);
  bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  if (year - 1900 > INT32_MAX || year - 1900 < INT32_MIN) {
    errno = EOVERFLOW;
    return NULL;
  }
  *parts = (struct tm){
    .tm_year = (int)(year - 1900),
    .tm_mon = (int)(month < 10 ? month + 2 : month - 10),
    .tm_mday = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    .tm_hour = (int)(second / 3600),
    .tm_min = (int)(second / 60 % 60),
    .tm_sec = (int)(second % 60),
    .tm_wday = (int)weekday,
    .tm_yday = (int)(month < 10 ? day_of_year + 59 + is_leap : day_of_year - 306),
    .tm_zone = "GMT",
  };
  return parts;
}

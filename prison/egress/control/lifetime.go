package control

import (
	"strconv"
	"time"
)

// Ended reports whether a rule has ended. A rule that was made later than now has ended: the clock was set back, so that its end
// says nothing about how long it has been in force.
func (r Rule) Ended(now time.Time) bool {
	return !r.Until.IsZero() && (!r.Until.After(now) || now.Before(r.Since))
}

// Lifetimes are the ends of temporary permissions in a running network, by the monotonic clock: whoever sets the clock back makes no
// permission longer, and one that has ended stays ended. The zero value is ready for use. A denial ends by the time of day alone: if the
// clock is wrong, it is in force for longer.
type Lifetimes map[string]time.Time

// InForce returns rules without the permissions that have ended, and with the ends that the monotonic clock gives to the others.
// now is a result of [time.Now], and day the time of day.
func (l *Lifetimes) InForce(rules Rules, now, day time.Time) Rules {
	var allow []Rule
	for _, r := range rules.Allow {
		if !r.Until.IsZero() {
			r.Until = l.end(r, now, day)
		}
		if r.Until.IsZero() || r.Until.After(now) {
			allow = append(allow, r)
		}
	}
	rules.Allow = allow
	return rules
}

// end returns the end of a rule, which is not after now if it has ended.
func (l *Lifetimes) end(r Rule, now, day time.Time) time.Time {
	if *l == nil {
		*l = Lifetimes{}
	}
	key := strconv.FormatInt(r.Until.UnixNano(), 10) + " " + r.Text
	end, known := (*l)[key]
	if !known {
		end = now.Add(r.Until.Round(0).Sub(day)) // it has the monotonic time, too
	}
	if r.Ended(day) && end.After(now) {
		end = now
	}
	(*l)[key] = end
	return end
}

"""Audits of tracks: requests, parts, schedules, alerts."""

"""Carriers: who carries the bytes from rank to rank. Each is a `Carrier`; plugins provide others by
the hook `plugrad_carriers`."""

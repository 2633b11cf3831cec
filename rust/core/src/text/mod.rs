//! Work on one text or on many: normal forms and fingerprints.
